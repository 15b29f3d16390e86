/**
 * Every bound of sources of foreign events, whose servers may be slow, dead, endless or lying.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
export const sourceLimits = {
  /** Events that one question asks for, and that an answer may have all the same. */
  pollEvents: 50,
  answerMaxEvents: 500,
  /** Where a server does not say when to ask again, and whatever it says. */
  pollMs: 5_000,
  pollMinMs: 1_000,
  pollMaxMs: 3_600_000,
  /** After a question without a usable answer the next waits, twice as long each time. */
  backOffBaseMs: 1_000,
  backOffMaxMs: 60_000,
  /** A program that is silent for so long has lost its question to another: longer than a connection and an answer may take. */
  claimMs: 90_000,
  /** Questions that one program has under way, of those kept free for projects that have none, and of one project. */
  concurrentPolls: 16,
  sparePolls: 4,
  pollsPerProject: 4,
  cursorMaxChars: 4_000,
  eventIdMaxChars: 500,
  /** Of one payload, in JSON text; a larger one is left out. */
  payloadMaxChars: 65_536,
  /** An occurrence that a server's clock says is further ahead is passed over: it would have to be remembered for so much longer. */
  occurrenceMaxAheadMs: 86_400_000
} as const
