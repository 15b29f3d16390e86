/**
 * The client for programs without Effect as its callers see it: types alone.
 */
import type { CallOptions, Feed, LiveOptions } from "./call-shapes.ts"
import type { Calls, ChatAnswer, ChatInput, GraphEvent, LoggedEvent, TextDeltaEvent } from "./contract.gen.ts"

export interface CreateClientOptions {
  /** The server's address: `http://127.0.0.1:4400`. */
  readonly url: string
  /** A bearer token; a page that the server itself served has its cookie and needs none. */
  readonly token?: string | undefined
  /** The project's id; without it the only project that the token reaches. */
  readonly project?: string | undefined
  /** How often a request is made again that has no second effect; 4 by itself. */
  readonly retries?: number | undefined
  /** The platform's own by itself. */
  readonly fetch?: ((input: string | URL | Request, init?: RequestInit) => Promise<Response>) | undefined
}

/** What a log's feed tells; a newer server may tell more. */
export type ToldEvent = LoggedEvent | TextDeltaEvent

/** A piece of an answer; `begun` that comes again says that its words begin anew. */
export type ChatEvent =
  | { readonly type: "begun"; readonly conversationId: string }
  | { readonly type: "words"; readonly text: string }
  | { readonly type: "toolCall"; readonly callId: string; readonly status: string }
  | { readonly type: "done"; readonly answer: ChatAnswer }

/** The live feeds and the way to other projects. */
export interface Beside {
  /** What happens to the graph. */
  readonly events: (options?: LiveOptions) => Feed<GraphEvent>
  /** What is said and done in a context; `TextDeltaEvent`s pass by while an answer is written. */
  readonly contextEvents: (name: string, options?: LiveOptions) => Feed<ToldEvent>
  /** What a run does, until it has ended. */
  readonly runEvents: (runId: string, options?: LiveOptions) => Feed<ToldEvent>
  /** Says something and tells the answer as it is made; a second loop over what it returns says it no second time. */
  readonly chatEvents: (message: ChatInput, options?: CallOptions) => AsyncIterable<ChatEvent>
  /** The same client in another project. */
  readonly in: (project: string) => PlainClient
}

/** Every call of the contract, grouped as there, and what goes on for longer than a call. */
export type PlainClient = Calls & Beside
