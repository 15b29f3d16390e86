/**
 * The addresses of the chat: the conversations, and one of them beside the list.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

/** One component for both addresses, so that the list keeps its place when a conversation is opened. */
const chatRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "chat",
  staticData: { title: "Chat" },
  component: lazyPage(() => import("./chat-page.tsx"), "ChatPage")
})

const listRoute = createRoute({ getParentRoute: () => chatRoute, path: "/chat" })
const conversationRoute = createRoute({ getParentRoute: () => chatRoute, path: "/chat/$conversationId" })

export const chatRoutes = [chatRoute.addChildren([listRoute, conversationRoute])] as const
