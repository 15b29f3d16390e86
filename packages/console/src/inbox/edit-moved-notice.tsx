/**
 * What has changed under an edit since it began: what the suggestion is about, or what the agent suggests.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { MovedNotice } from "../parts/moved-notice.tsx"
import { Visible } from "../parts/visible.tsx"
import { differentFields, type EditField, editFields } from "../suggestion/edit-fields.ts"
import { propertyOf } from "../suggestion/property-diff.ts"
import { cutText } from "../words/cut-text.ts"

interface EditMovedNoticeProps {
  readonly fields: ReadonlyArray<EditField>
  /** The suggestion as it was when the edit began. */
  readonly shown: SuggestionTask
  readonly task: SuggestionTask
  /** It is read: the edit goes on for how it is now. */
  readonly onKeep: () => void
}

export const EditMovedNotice = ({ fields, shown, task, onKeep }: EditMovedNoticeProps): ReactNode => {
  const hasMoved = versionOf(task) !== versionOf(shown)
  const isRefined = task.digest !== shown.digest
  if (!hasMoved && !isRefined) return null
  return (
    <MovedNotice
      actions={
        <Button data-testid="keep-mine" size="small" onClick={onKeep}>
          Keep mine on top of the current version
        </Button>
      }
    >
      {hasMoved && <p>The object changed since you started editing.</p>}
      <Sentences all={movedSentences(fields, shown, task)} />
      {isRefined && <p>The agent has updated the suggestion since you started editing.</p>}
      <Sentences all={refinedSentences(shown, task)} />
    </MovedNotice>
  )
}

const Sentences = ({ all }: { readonly all: ReadonlyArray<string> }): ReactNode =>
  all.length > 0 && (
    <ul className="m-0 list-none p-0">
      {all.map((sentence) => (
        <li key={sentence}>
          <Visible text={sentence} />
        </li>
      ))}
    </ul>
  )

/** The version of what it would change, as it is now. */
const versionOf = ({ target, relationship }: SuggestionTask): number | undefined =>
  (target ?? relationship)?.version

/** Those of the fields whose property is no longer what it was when the edit began. */
const movedSentences = (
  fields: ReadonlyArray<EditField>,
  shown: SuggestionTask,
  task: SuggestionTask
): ReadonlyArray<string> =>
  fields.flatMap(({ name }) =>
    nowText(shown, name) === nowText(task, name) ? [] : [`${name} is ${shortText(nowText(task, name))} now.`]
  )

const nowText = ({ target, relationship }: SuggestionTask, name: string): string => {
  const now = propertyOf((target ?? relationship)?.properties ?? {}, name)
  return now === undefined ? "gone" : JSON.stringify(now)
}

/** What the agent suggests otherwise than when the edit began. */
const refinedSentences = (shown: SuggestionTask, task: SuggestionTask): ReadonlyArray<string> => {
  const before = editFields(shown.payload.suggestedChanges) ?? []
  const now = editFields(task.payload.suggestedChanges) ?? []
  return [
    ...differentFields(before, now).map(suggestedSentence),
    ...before
      .filter(({ name }) => !now.some((field) => field.name === name))
      .map(({ name }) => `It no longer suggests anything for ${name}.`)
  ]
}

const suggestedSentence = ({ kind, name, text }: EditField): string =>
  kind === "removal"
    ? `It suggests removing ${name}.`
    : `It suggests ${shortText(kind === "text" ? JSON.stringify(text) : text)} for ${name}.`

const shortText = (text: string): string => cutText(text, 2, 200)
