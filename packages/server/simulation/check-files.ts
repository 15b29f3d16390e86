/**
 * Checks files: each is kept as it was sent, who may read it was shown it or sent it, and what nobody vouches for taints.
 */
import type { Rows } from "./rows.ts"
import { type Checker, unless } from "./remains.ts"

/** A file that somebody was told is kept is there for them, and every file has the bytes of its digest. */
const filesKept: Checker = ({ acknowledged, files }) => [
  ...files.flatMap(({ digest, trueDigest }) =>
    unless(digest === trueDigest, `the file ${digest} has the bytes of ${trueDigest}`)
  ),
  ...acknowledged.filed
    .filter(({ isSure }) => isSure)
    .flatMap(({ by, digest }) =>
      unless(
        files.some((file) => file.digest === digest && file.readers.includes(by)),
        `the file ${digest} of ${by} is lost`
      )
    )
]

interface Shown {
  readonly context: string
  /** Who may read the context; '' is everybody in the project. */
  readonly reader: string
  readonly digest: string
  readonly isUntrusted: boolean
}

/** The files in logs. */
const shownIn = ({ contextEvents, contexts }: Rows): ReadonlyArray<Shown> => {
  const ownerOf = new Map(contexts.map(({ name, owner }) => [name, owner]))
  return contextEvents.flatMap(({ contextName: context, event }) =>
    event.type === "FileAttachmentEvent" && "digest" in event
      ? [
          {
            context,
            reader: ownerOf.get(context) ?? "",
            digest: event.digest,
            isUntrusted: event.untrusted === true
          }
        ]
      : []
  )
}

/** Who may read a log may read the files in it, and nobody else may who did not send them. */
const filesRead: Checker = (remains) => {
  const { acknowledged, files } = remains
  const shown = shownIn(remains)
  return [
    ...shown.flatMap(({ context, digest, reader }) =>
      unless(
        files.some((file) => file.digest === digest && file.readers.includes(reader)),
        `the file ${digest} is in ${context}, and who reads that may not read it`
      )
    ),
    ...files.flatMap(({ digest, readers }) =>
      readers.flatMap((reader) =>
        unless(
          shown.some((one) => one.digest === digest && one.reader === reader) ||
            acknowledged.filed.some((one) => one.digest === digest && one.by === reader),
          `${reader || "everybody"} may read the file ${digest} and was never shown it`
        )
      )
    ),
    ...acknowledged.shown.flatMap(({ context, digest }) =>
      unless(
        shown.some((one) => one.context === context && one.digest === digest),
        `the file ${digest} was shown in ${context} and is not in its log`
      )
    )
  ]
}

/** A context that was shown what nobody vouches for is tainted by it, and by no file that it was not shown. */
const filesTaint: Checker = (remains) => {
  const shown = shownIn(remains).filter(({ isUntrusted }) => isUntrusted)
  const isShown = (context: string, digest: string): boolean =>
    shown.some((one) => one.context === context && one.digest === digest)
  const taintsOf = ({ taintedBy }: Rows["contexts"][number]): ReadonlyArray<string> =>
    (taintedBy ?? []).flatMap(({ id, kind }) => (kind === "attachment" ? [id] : []))
  return remains.contexts.flatMap((context) => [
    ...shown
      .filter((one) => one.context === context.name)
      .flatMap(({ digest }) =>
        unless(
          taintsOf(context).includes(digest),
          `${context.name} was shown the file ${digest}, for which nobody vouches, and is not tainted by it`
        )
      ),
    ...taintsOf(context).flatMap((digest) =>
      unless(
        isShown(context.name, digest) || context.forkedFrom !== null,
        `${context.name} is tainted by the file ${digest} and was never shown it`
      )
    )
  ])
}

export const checkFiles = { filesKept, filesRead, filesTaint }
