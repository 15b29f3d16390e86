/** The services of chat: conversations, turns, completions and responses. Requires the reactions. */
import { Layer } from "effect"
import { Chatting, Messages, Speaking } from "./chat.ts"
import { Completions, Responses } from "./completions.ts"
import { Conversations } from "./conversations.ts"
import { Turns } from "./turns.ts"
export const chatLayer = Layer.provideMerge(
  Layer.mergeAll(Chatting.layer, Completions.layer, Responses.layer),
  Layer.mergeAll(Conversations.layer, Messages.layer, Speaking.layer, Turns.layer)
)
