/**
 * Faults of files: other bytes, a reader too many or too few, a taint that is left out.
 */
import type { Digest } from "@tropism/domain/attachment"
import type { Plant } from "./plant.ts"

export const filePlants: ReadonlyArray<Plant> = [
  {
    checker: "filesKept",
    fault: "a file has other bytes than it was sent with",
    sql: [`update kb.attachments set bytes = 'other' where project_id = $1`]
  },
  {
    checker: "filesKept",
    fault: "a file that somebody was told is kept is lost",
    sql: [],
    testimony: ({ acknowledged }) => ({
      filed: [...acknowledged.filed, { digest: "0".repeat(64) as Digest, by: "fay", isSure: true }]
    })
  },
  {
    checker: "filesRead",
    fault: "a file may be read by somebody who was never shown it",
    sql: [
      `insert into kb.attachment_readers (project_id, digest, reader) select project_id, digest, 'mallory' from kb.attachments where project_id = $1`
    ]
  },
  {
    checker: "filesRead",
    fault: "who reads a log may not read the file in it",
    sql: [`delete from kb.attachment_readers where project_id = $1`]
  },
  {
    checker: "filesRead",
    fault: "a file that was shown is not in the log",
    sql: [],
    testimony: ({ acknowledged }) => ({
      shown: [...acknowledged.shown, { context: "files-fay", digest: "0".repeat(64) as Digest }]
    })
  },
  {
    checker: "filesTaint",
    fault: "a file for which nobody vouches taints nothing",
    sql: [
      `update kb.context_events set payload = payload || '{"untrusted": true}' where project_id = $1 and type = 'FileAttachmentEvent' and not payload ? 'untrusted'`
    ]
  }
]
