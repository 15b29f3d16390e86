/**
 * What a suggestion is about: an object by its type and key, or the two ends of a relationship.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { ArrowIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { objectQuery, relationshipQuery } from "../server/queries.ts"
import { subjectOf } from "../suggestion/change-words.ts"

interface SubjectLineProps {
  readonly projectId: string
  readonly task: SuggestionTask
}

export const SubjectLine = ({ projectId, task }: SubjectLineProps): ReactNode => {
  const change = task.payload.suggestedChanges
  if (change.type === "createRelationship") {
    const { fromId, toId, type } = change.relationship
    return <Ends projectId={projectId} fromId={fromId} type={type} toId={toId} />
  }
  if (change.type === "deleteRelationship") {
    return <KnownRelationship projectId={projectId} relationshipId={change.relationshipId} />
  }
  const subject = subjectOf(task)
  // The server's titles name the object already; it need not be read twice.
  const isInTitle =
    subject !== undefined && task.title.includes(`${subject.type} ${subject.key ?? task.target?.id}`)
  return (
    <Line>
      {isInTitle ? null : subject === undefined ? (
        <Named type="Object" name={"objectId" in change ? change.objectId : "unknown"} />
      ) : (
        <Named type={subject.type} name={subject.key ?? task.target?.id ?? "without a key"} />
      )}
      {task.target !== null && <span className="text-ink-faint">version {task.target.version}</span>}
    </Line>
  )
}

const KnownRelationship = ({
  projectId,
  relationshipId
}: {
  readonly projectId: string
  readonly relationshipId: string
}): ReactNode => {
  const { data: relationship } = useQuery(relationshipQuery(projectId, relationshipId))
  if (relationship) {
    const { fromId, type, toId } = relationship
    return <Ends projectId={projectId} fromId={fromId} type={type} toId={toId} />
  }
  return (
    <Line>
      <Named type="Relationship" name={relationshipId} />
      {relationship === null && <span className="font-medium text-caution-ink">already gone</span>}
    </Line>
  )
}

interface EndsProps {
  readonly projectId: string
  readonly fromId: string
  readonly type: string
  readonly toId: string
}

const Ends = ({ projectId, fromId, type, toId }: EndsProps): ReactNode => (
  <Line>
    <End projectId={projectId} objectId={fromId} />
    <span className="inline-flex items-center gap-1.5 rounded-full border border-line px-2 py-px text-2xs text-ink-soft">
      <Visible text={type} />
      <ArrowIcon size="tiny" />
    </span>
    <End projectId={projectId} objectId={toId} />
  </Line>
)

const End = ({
  projectId,
  objectId
}: {
  readonly projectId: string
  readonly objectId: string
}): ReactNode => {
  const { data: object } = useQuery(objectQuery(projectId, objectId))
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2">
      <Named type={object?.type ?? "Object"} name={object?.key ?? objectId} />
      {object === null && <span className="font-medium text-caution-ink">gone</span>}
    </span>
  )
}

const Line = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <p className="flex min-w-0 flex-wrap items-baseline gap-x-2.5 gap-y-1 text-xs">{children}</p>
)

const Named = ({ type, name }: { readonly type: string; readonly name: string }): ReactNode => (
  <span className="min-w-0">
    <span className="text-ink-soft">
      <Visible text={type} />
    </span>{" "}
    <span className="font-mono text-ink">
      <Visible text={name} exact />
    </span>
  </span>
)
