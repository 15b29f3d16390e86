/**
 * How the console is built: static files in `dist`, served by the server at `/`.
 *
 * `vite` alone serves the sources for work on the console itself and passes
 * the server's own addresses on to a server that runs beside it.
 */
import tailwind from "@tailwindcss/vite"
import react from "@vitejs/plugin-react"
import { defineConfig } from "vite"

/** The default address of `tropism start`. */
const server = "http://127.0.0.1:4400"

export default defineConfig({
  root: import.meta.dirname,
  base: "/",
  plugins: [react(), tailwind()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    reportCompressedSize: false,
    // What every page needs is one file; each page but the inbox is another, loaded when it is opened.
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      // How long each plugin took depends on the machine; it is no warning.
      checks: { bundlerTimings: false },
      // Libraries mark files for server components; in a bundle for the browser the mark says nothing.
      onLog: (level, log, handler) => {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") handler(level, log)
      }
    }
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/login", "/logout", "/health", "/ready", "/docs", "/openapi.json"].map((path) => [
        path,
        server
      ])
    )
  }
})
