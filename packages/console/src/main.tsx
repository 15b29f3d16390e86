/**
 * Starts the console in the page: the cache of what the server said, and the addresses.
 */
import "./styles.css"
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { NowProvider } from "./parts/time-ago.tsx"
import { router } from "./routes.tsx"
import { isOfWhoAsks } from "./server/problem.ts"
import { principalQuery } from "./server/queries.ts"

/** A session that ended, or a role that changed, shows itself anywhere first; asking who we are then shows it everywhere. */
const askWhoWeAre = (error: unknown): void => {
  if (isOfWhoAsks(error)) queryClient.invalidateQueries({ queryKey: principalQuery.queryKey })
}

const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      if (queryKey[0] !== principalQuery.queryKey[0]) askWhoWeAre(error)
    }
  }),
  mutationCache: new MutationCache({ onError: askWhoWeAre }),
  // The server is usually this machine: being offline says nothing about it, and lists are read again anyway.
  defaultOptions: { queries: { networkMode: "always", retry: false }, mutations: { networkMode: "always" } }
})

const root = document.getElementById("root")
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <NowProvider>
          <RouterProvider router={router} />
        </NowProvider>
      </QueryClientProvider>
    </StrictMode>
  )
}
