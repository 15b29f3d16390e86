/**
 * What each problem means and what to do about it: the page at the address that is its type.
 *
 * A problem without a page does not compile, nor does a reason without its sentence.
 */
import type * as problems from "./problems.ts"

/** The types of all problems that there are. */
export type ProblemType = {
  [Name in keyof typeof problems]: (typeof problems)[Name] extends abstract new (...fields: never) => {
    readonly type: infer Type extends string
  }
    ? Type
    : never
}[keyof typeof problems]

export interface ProblemPage {
  readonly status: number
  readonly title: string
  readonly meaning: string
  /** Members beside `type`, `title`, `status`, `detail` and `instance`, and what they tell. */
  readonly members: Readonly<Record<string, string>>
  /** What `reason` may say. */
  readonly reasons: Readonly<Record<string, string>>
  /** What whoever is told this does. */
  readonly remedy: string
}

const errors =
  "each fault: `pointer` is a JSON pointer into the body or the name of a parameter, `message` says what is wrong there, and `field` names the field that was meant where its name was sent in snake_case"

const conflictReasons: Readonly<Record<problems.Conflict["reason"], string>> = {
  version: "It was changed since the version that you expected. Read it again.",
  keyBusy: "The first request under the Idempotency-Key is still at work. Send it again in a moment.",
  keyUnreadable:
    "The request was done under this Idempotency-Key, and what came of it cannot be told again: it was sealed with a key that this server no longer has, or with a JWT that was renewed since. Look at how things stand.",
  keyTaken: "Another object of this type has the key; `existingId` names it.",
  nameTaken: "Another has the name.",
  relationshipExists: "There is such a relationship between the two already; `existingId` names it.",
  alreadyDecided: "Somebody has decided or answered this already.",
  digestMismatch: "What you saw is not what would be done now. Read the task again.",
  outdated:
    "What the suggestion would change has moved since; `conflicts`, `current`, `gone` and `relationships` tell how. An approval of edited properties says in `suggestedChanges.baseVersion` for which version they are.",
  notPermitted: "The agent, or this kind of run, may not do that.",
  untrusted: "The run has read something that nobody vouches for, and may only suggest.",
  agentDisabled: "The agent is disabled. Enable it first.",
  tooManySuggestions: "The agent has as many undecided suggestions as it may have.",
  rejectedBefore: "A person has rejected the same suggestion before.",
  expired: "The time for it is over.",
  stopped: "Somebody has stopped all agents of the project or the server.",
  state: "It is in a state in which this cannot be done; `detail` names it.",
  lastAdmin: "The project would have no admin any more: make somebody else an admin first.",
  idTaken: "The id is used already.",
  finished: "It is over already.",
  otherFile: "The import with this id was begun with another file.",
  otherSettings: "The import with this id was begun with other settings.",
  answered: "Another client has answered the tool call already: the first answer counts.",
  unknown: "No call with this `callId` waits for a client in this context, or ever has.",
  notWaiting: "The call does not wait any more: its time is over, or its run or turn has ended."
}

const inputReasons: Readonly<Record<NonNullable<problems.InvalidInput["reason"]>, string>> = {
  unknownParent: "The log has no event with the id in `parentEventId`. Name an earlier event of this log.",
  embeddingUnavailable: "Search by meaning is not available yet. Leave `embeddingModel` out."
}

const rateReasons: Readonly<Record<problems.TooManyRequests["reason"], string>> = {
  pendingRuns:
    "The agent has as many runs that wait or work as it may have, or has begun as many as it may; `detail` says which bound it is.",
  rate: "The token, or the address when no valid token came, asks more often than it may."
}

const unreadyReasons: Readonly<Record<NonNullable<problems.Unavailable["reason"]>, string>> = {
  stopping: "The server is stopping.",
  partEnded: "A part of the server has ended; `detail` names it. Restart the server.",
  databaseAway: "The database does not answer in time.",
  databaseFull: "The database has no connection left for this server.",
  databaseReadOnly: "The database accepts no writes."
}

export const problemPages: Readonly<Record<ProblemType, ProblemPage>> = {
  "/problems/malformed-request": {
    status: 400,
    title: "The request cannot be read",
    meaning:
      "The body is no JSON, or is written in a way that cannot be kept as it was sent; or the request names its host twice, or is no HTTP.",
    members: { errors },
    reasons: {},
    remedy: "Send a body that is JSON, with the header `content-type: application/json`."
  },
  "/problems/unauthorized": {
    status: 401,
    title: "A valid token is needed",
    meaning: "No credential came with the request, or one that is unknown, has expired or was revoked.",
    members: {},
    reasons: {},
    remedy: "Send a valid token: `Authorization: Bearer …`. A browser signs in by a login link."
  },
  "/problems/forbidden": {
    status: 403,
    title: "You may not do this",
    meaning:
      "The credential is good, and whoever it stands for may not do this: their role in this project or on this server does not allow it, or it is somebody else's to do.",
    members: {},
    reasons: {},
    remedy: "`detail` says who may: for a role that may, ask an admin of the project."
  },
  "/problems/foreign-page": {
    status: 403,
    title: "This does not come from a page of this server",
    meaning:
      "A browser's session came with a request that changes something, and the browser does not say that a page of this server sent it: neither `Sec-Fetch-Site: same-origin` nor an `Origin` that is ours. Or the request was sent to a name that this server does not know as its own.",
    members: {},
    reasons: {},
    remedy:
      "A program sends a token instead: `Authorization: Bearer …`. A proxy passes on `Host`, `Origin` and `X-Forwarded-Proto` as they are, and the address that browsers see stands in `TROPISM_ALLOWED_ORIGINS`."
  },
  "/problems/origin-not-allowed": {
    status: 403,
    title: "This server is not called so, or not from there",
    meaning:
      "The request names the server by a `Host` that it does not know as its own, or comes from a page (`Origin`) that may not call it. Whose token it was is not asked.",
    members: {},
    reasons: {},
    remedy:
      "Call the server by its own address, or let its operator add the address or the page's origin to `TROPISM_ALLOWED_ORIGINS`; `detail` names it."
  },
  "/problems/not-found": {
    status: 404,
    title: "Not found",
    meaning:
      "There is no such thing, it was deleted, or it belongs to a project that your token does not reach. Which of these is told to nobody.",
    members: {},
    reasons: {},
    remedy: "Check the address, the id and the project."
  },
  "/problems/method-not-allowed": {
    status: 405,
    title: "This cannot be asked of this address",
    meaning: "There is such an address, and it does not take this method.",
    members: {},
    reasons: {},
    remedy: "Use one of the methods in the header `Allow`."
  },
  "/problems/conflict": {
    status: 409,
    title: "The present state does not allow this",
    meaning: "The request was understood, and how things stand now forbids it.",
    members: {
      reason: "why, as a word for programs",
      conflicts: "with `outdated`: each place that moved under the change, as it was seen, is, and would be",
      current: "with `outdated`: the target's version now; null when there is none",
      gone: "with `outdated`: whether the target, or an end of a new relationship, is no longer there",
      relationships:
        "with `outdated`: relationships that would fall with an object and that somebody else made since",
      existingId: "with `keyTaken` and `relationshipExists`: what is there already"
    },
    reasons: conflictReasons,
    remedy: "Look at how things stand and decide anew; the same request sent again is told the same."
  },
  "/problems/precondition-failed": {
    status: 412,
    title: "It is not what If-Match names",
    meaning: "Somebody has changed it since you read it. Nothing of the request was done.",
    members: {},
    reasons: {},
    remedy: "Read it again, decide anew and send the `ETag` of that answer as `If-Match`."
  },
  "/problems/body-too-large": {
    status: 413,
    title: "The body is too large",
    meaning: "The body, or a file in it, is larger than this door takes.",
    members: {},
    reasons: {},
    remedy: "Send less at once; large files are imported line by line."
  },
  "/problems/invalid-input": {
    status: 422,
    title: "Something in the request is wrong",
    meaning: "The request can be read, and something in it does not fit. Nothing of it was done.",
    members: { errors, reason: "what is wrong, where `errors` alone does not tell a program" },
    reasons: inputReasons,
    remedy: "Mend what `errors` names."
  },
  "/problems/too-many-requests": {
    status: 429,
    title: "There is too much of this already",
    meaning: "The request was refused before anything of it was done, because there is too much of its kind.",
    members: {
      reason: "what there is too much of",
      retryAfterSeconds: "when trying again makes sense, as the header `Retry-After` says, too"
    },
    reasons: rateReasons,
    remedy: "Wait for `Retry-After` seconds; pace yourself by the `RateLimit` field of each answer."
  },
  "/problems/server-fault": {
    status: 500,
    title: "The server failed to do this",
    meaning: "The server has a fault. What it is stands in its log, under the request's id.",
    members: {},
    reasons: {},
    remedy:
      "Tell whoever runs the server the `instance`. A write may be sent again with its `Idempotency-Key`."
  },
  "/problems/unavailable": {
    status: 503,
    title: "The server cannot work at the moment",
    meaning: "The server starts or stops, or its database does not answer.",
    members: { reason: "at `/ready`, why the server should get no work" },
    reasons: unreadyReasons,
    remedy: "Try again in a moment, or at another server of the same database."
  }
}
