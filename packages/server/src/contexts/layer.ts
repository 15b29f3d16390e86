/** Provides the logs of contexts, their files and the search in their text. It needs the database and the outbox. */
import { Layer } from "effect"
import { Attachments } from "./attachments.ts"
import { Contexts } from "./contexts.ts"
import { Passages } from "./passages.ts"
export const contextsLayer = Layer.mergeAll(Contexts.layer, Passages.layer, Attachments.layer)
