/**
 * Every bound of events over MCP, with its unit in its name.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
export const eventLimits = {
  /** Events that one poll answers at most, and where nobody says. */
  pollMaxEvents: 100,
  pollEvents: 50,
  /** Places of the feed that one look goes through, whatever is meant by it. */
  lookPlaces: 2_000,
  /** What a client that has seen everything waits before it asks again. */
  nextPollMs: 5_000,
  /** Of one occurrence's properties, in JSON text: with all else it fits a delivery of 256 KiB, each character of up to three bytes. */
  occurrencePropertiesMaxChars: 80_000,
  /** Of one answer to a poll, in JSON text, and one event more. */
  pollMaxChars: 2_000_000,
  /** Streams that are open at one server, of everybody and of one user in one project. */
  streams: 500,
  streamsPerUser: 20,
  /** A stream that has sent so much is ended, and its client goes on from its cursor: nobody knows how much of it was taken. */
  streamMaxChars: 8_000_000,
  /** Subscriptions of one user in one project. */
  subscriptionsPerUser: 100,
  urlMaxChars: 2_000,
  /** Bytes of a signing secret, as Standard Webhooks says. */
  secretMinBytes: 24,
  secretMaxBytes: 64,
  /** A subscription ends that nobody refreshes: where nobody says when, at the soonest and at the latest. */
  subscriptionMs: 86_400_000,
  subscriptionMinMs: 60_000,
  subscriptionMaxMs: 2_592_000_000,
  /** Deliveries are signed with the secret of before, too, for this long after another was given. */
  secretGraceMs: 600_000,
  /** Subscriptions whose secrets are sealed anew in one transaction. */
  sealedTogether: 100,
  /** Of one delivery, from the connection to the answer. */
  deliveryTimeoutMs: 10_000,
  answerMaxBytes: 4_096,
  /** Addresses of one host that are asked in a minute whether they want deliveries. */
  challengesPerHostAndMinute: 30,
  /** Hosts that are remembered for it. */
  challengedHosts: 1_000,
  /** Subscriptions that one program delivers to at once, of those kept free for projects that have none of theirs under way, and of one project. */
  deliverers: 16,
  spareDeliverers: 4,
  deliverersPerProject: 8,
  /** Events of one subscription, and time, before the next have their turn; what is posted by then ends first. */
  turnEvents: 100,
  turnMs: 10_000,
  /** A program that is silent for so long has lost what it delivers to another. */
  claimMs: 30_000,
  /** After a failure the next try waits, twice as long each time; after so many in a row deliveries are suspended. */
  backOffBaseMs: 1_000,
  backOffMaxMs: 3_600_000,
  maxAttempts: 16
} as const
