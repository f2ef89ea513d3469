"""The AI SDK dialect: the UI Message Stream, `useChat`, and the chat endpoints that speak it."""
