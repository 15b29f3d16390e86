/**
 * The shapes that every call has, whatever it is about: what it is told beside its body, and in which form it answers.
 *
 * Types alone, without Effect: they are a part of what a stranger's compiler
 * reads. `contract.gen.ts` has the shapes of the contract.
 */

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** A name of your own for a POST, so that another program may repeat it; one is made by itself. */
  readonly idempotencyKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** What a call that sends a body may ask beside it. */
export interface AskingOptions<Query> extends CallOptions {
  readonly query?: Query | undefined
}

/** What is sent as it is. */
export type Bytes = Uint8Array | Blob | ReadableStream<Uint8Array>

/** A JSON object whose members the contract does not know. */
export interface JsonObject {
  readonly [name: string]: unknown
}

/** One page; `nextCursor` is null on the last. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

/** `for await` goes over all items and asks for each page when it is needed. */
export interface Listing<A> extends AsyncIterable<A> {
  /** One page: the first, or that behind a cursor. */
  readonly page: (cursor?: string | null) => Promise<Page<A>>
  /** All items, in memory. */
  readonly all: () => Promise<ReadonlyArray<A>>
}

export interface LiveOptions {
  /** Only what comes after this place: a position of the feed, a number of the log, its `start`, or `now`, the default. */
  readonly after?: number | string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Events as they come; leaving the loop ends the connection. */
export interface Feed<A> extends AsyncIterable<A> {
  /** The place of the event that was handed out last, for `after`; before the first, the place behind which it begins, as soon as that is known. */
  readonly lastEventId: string | undefined
}

/** `page`: items and a cursor; `lines`: JSON line by line; `bytes`, `text`; `value`: JSON or nothing. */
export type AnswerForm = "value" | "page" | "lines" | "bytes" | "text"

/** Where a call goes. */
export interface EndpointPlace {
  /** Group and name: `tasks.approve`. */
  readonly call: string
  readonly method: string
  /** With its ids in braces: `/api/projects/{projectId}/tasks/{taskId}`. */
  readonly path: string
  /** Whether it has a body. */
  readonly sends: boolean
  /** Whether it has a query. */
  readonly asks: boolean
  readonly form: AnswerForm
}
