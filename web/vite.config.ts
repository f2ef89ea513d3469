import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// In development `npm run dev` serves the UI and hands API calls to a running server.
const server = process.env.OSTLER_ENDPOINT ?? "http://127.0.0.1:2468";

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    outDir: process.env.OSTLER_WEB_OUT ?? "../src/ostler/_web",
    emptyOutDir: true,
    target: "es2022",
    reportCompressedSize: false,
  },
  server: { port: 5173, proxy: { "/api": { target: server, changeOrigin: true, headers: { origin: server } } } },
});
