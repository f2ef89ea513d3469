import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// In development `npm run dev` serves the UI and hands API calls to a running server.
const server = process.env.OSTLER_ENDPOINT ?? "http://127.0.0.1:2468";

const BASE =
  /node_modules\/(react|react-dom|scheduler|wouter|regexparam|use-sync-external-store|virtua|lucide-react\/dist\/esm\/[a-zA-Z.]+\.m?js)|src\/(api|main|app|shell)|src\/parts\/(text|counts|agent_mark|now|status|toasts|boundary|who|menu|icons)|src\/state\/(store|sessions|me|unread|attention|push|tools|theme|places|logins|prompts|recent|typed|keys|titles|wishes)\./;

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    outDir: process.env.OSTLER_WEB_OUT ?? "../src/ostler/_web",
    emptyOutDir: true,
    target: "es2022",
    reportCompressedSize: false,
    // What every page needs is one file: small ones of their own compress badly.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", test: BASE }] } } },
  },
  server: { port: 5173, proxy: { "/api": { target: server, changeOrigin: true, headers: { origin: server } } } },
});
