/**
 * What a program without Effect has of the client, by one name: `@tropism/client`.
 */
// oxlint-disable oxc/no-barrel-file -- a stranger's program imports from one place
export { createClient } from "./create-client.ts"
export { isProblem, TropismProblem, TropismUnreachable, TropismUnreadable } from "./problem.ts"
export type { Beside, ChatEvent, CreateClientOptions, PlainClient, ToldEvent } from "./plain-client.ts"
export type { ProblemError, ProblemName } from "./problem.ts"
export type * from "./contract.gen.ts"
export type {
  AskingOptions,
  Bytes,
  CallOptions,
  Feed,
  JsonObject,
  Listing,
  LiveOptions,
  Page
} from "./call-shapes.ts"
