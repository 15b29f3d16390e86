/**
 * Every way in which the API says no, as RFC 9457 problem details.
 *
 * `type` is a stable address below the server itself. A missing thing and
 * another project's thing give the same problem, so nothing can be probed.
 */
import { AddedRelationship, PropertyConflict } from "@tropism/domain/staleness"
import { Schema } from "effect"
import { HttpApiError } from "effect/http-api"

/** Where in the request the fault lies: a JSON pointer into the body, or the name of a parameter. */
export const InputFault = Schema.Struct({
  pointer: Schema.String,
  message: Schema.String,
  /** The field that was meant, where its name was written in snake_case. */
  field: Schema.optionalKey(Schema.String)
})
export type InputFault = typeof InputFault.Type

/** 400: the request cannot be read at all (its body is no JSON, a parameter is malformed). */
export class MalformedRequest extends HttpApiError.Problem<MalformedRequest>()(
  "MalformedRequest",
  {
    type: "/problems/malformed-request",
    status: 400,
    title: "The request cannot be read"
  },
  { errors: Schema.optionalKey(Schema.Array(InputFault)) }
) {}

/** 401: no credential, or one that is unknown, expired or revoked. */
export class Unauthorized extends HttpApiError.Problem<Unauthorized>()("Unauthorized", {
  type: "/problems/unauthorized",
  status: 401,
  title: "A valid token is needed"
}) {}

/** 403: the credential is good, but its role does not allow this, or it is somebody else's to do. */
export class Forbidden extends HttpApiError.Problem<Forbidden>()("Forbidden", {
  type: "/problems/forbidden",
  status: 403,
  title: "You may not do this"
}) {}

/** 403: a page elsewhere sent this, or a browser with a session and none of this server's pages asked it to. */
export class ForeignPage extends HttpApiError.Problem<ForeignPage>()("ForeignPage", {
  type: "/problems/foreign-page",
  status: 403,
  title: "This does not come from a page of this server"
}) {}

/** 403: the door is called by a name, or from a page, that is not known here. */
export class OriginNotAllowed extends HttpApiError.Problem<OriginNotAllowed>()("OriginNotAllowed", {
  type: "/problems/origin-not-allowed",
  status: 403,
  title: "This server is not called so, or not from there"
}) {}

/** 404: missing, deleted, or another project's. */
export class NotFound extends HttpApiError.Problem<NotFound>()("NotFound", {
  type: "/problems/not-found",
  status: 404,
  title: "Not found"
}) {}

/** 405: there is such an address, and this cannot be asked of it; the header `Allow` says what can. */
export class MethodNotAllowed extends HttpApiError.Problem<MethodNotAllowed>()("MethodNotAllowed", {
  type: "/problems/method-not-allowed",
  status: 405,
  title: "This cannot be asked of this address"
}) {}

/** 409: the request was understood and the present state forbids it. */
export class Conflict extends HttpApiError.Problem<Conflict>()(
  "Conflict",
  {
    type: "/problems/conflict",
    status: 409,
    title: "The present state does not allow this"
  },
  {
    reason: Schema.Literals([
      "version",
      "keyBusy",
      "keyUnreadable",
      "keyTaken",
      "nameTaken",
      "relationshipExists",
      "alreadyDecided",
      "digestMismatch",
      "outdated",
      "notPermitted",
      "untrusted",
      "agentDisabled",
      "tooManySuggestions",
      "rejectedBefore",
      "expired",
      "stopped",
      "state",
      "lastAdmin",
      "idTaken",
      "finished",
      "otherFile",
      "otherSettings",
      /** A tool call has its result already, is not known in this context, or does not wait any more. */
      "answered",
      "unknown",
      "notWaiting"
    ]),
    /** `outdated`: each place that moved under the change, as it was seen, is, and would be. */
    conflicts: Schema.optionalKey(Schema.Array(PropertyConflict)),
    /** `outdated`: the version of the target now; null when there is none. */
    current: Schema.optionalKey(Schema.NullOr(Schema.Int)),
    /** `outdated`: whether the target, or an end of a new relationship, is no longer there. */
    gone: Schema.optionalKey(Schema.Boolean),
    /** `outdated`: relationships that would fall with an object and that somebody else made since. */
    relationships: Schema.optionalKey(Schema.Array(AddedRelationship)),
    /** `keyTaken`, `relationshipExists`: what is there already. */
    existingId: Schema.optionalKey(Schema.String)
  }
) {}

/** 412: what is there now is not what the caller's If-Match names. */
export class PreconditionFailed extends HttpApiError.Problem<PreconditionFailed>()("PreconditionFailed", {
  type: "/problems/precondition-failed",
  status: 412,
  title: "It is not what If-Match names"
}) {}

/** 413: the body is larger than this door takes. */
export class BodyTooLarge extends HttpApiError.Problem<BodyTooLarge>()("BodyTooLarge", {
  type: "/problems/body-too-large",
  status: 413,
  title: "The body is too large"
}) {}

/** 422: the request can be read and something in it is wrong; `errors` says what and where. */
export class InvalidInput extends HttpApiError.Problem<InvalidInput>()(
  "InvalidInput",
  {
    type: "/problems/invalid-input",
    status: 422,
    title: "Something in the request is wrong"
  },
  {
    errors: Schema.Array(InputFault),
    reason: Schema.optionalKey(Schema.Literals(["unknownParent", "embeddingUnavailable"]))
  }
) {}

/** 429: there is too much of this already; the answer's `Retry-After` says when trying again makes sense. */
export class TooManyRequests extends HttpApiError.Problem<TooManyRequests>()(
  "TooManyRequests",
  {
    type: "/problems/too-many-requests",
    status: 429,
    title: "There is too much of this already"
  },
  {
    reason: Schema.Literals(["pendingRuns", "rate"]),
    retryAfterSeconds: Schema.Int
  }
) {}

/** 500: a fault of the server; the details are in its log under the request's id. */
export class ServerFault extends HttpApiError.Problem<ServerFault>()("ServerFault", {
  type: "/problems/server-fault",
  status: 500,
  title: "The server failed to do this"
}) {}

/** 503: the server is not able to work at the moment; trying again later is right. */
export class Unavailable extends HttpApiError.Problem<Unavailable>()(
  "Unavailable",
  {
    type: "/problems/unavailable",
    status: 503,
    title: "The server cannot work at the moment"
  },
  {
    /** Only at `/ready`: why this server should get no work. */
    reason: Schema.optionalKey(
      Schema.Literals(["stopping", "partEnded", "databaseAway", "databaseFull", "databaseReadOnly"])
    )
  }
) {}
