/**
 * One question of an agent, and the place to answer it: its options as buttons, or a field.
 *
 * It keeps what is being written and nothing else, also when somebody else was
 * first; sending is `use-answer.ts`'s.
 */
import type { QuestionTask } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useId, useState } from "react"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { CautionIcon, QuestionIcon } from "../parts/icons.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { visibleText } from "../words/visible-text.ts"
import { useLinkedCard } from "./linked-card.ts"
import { OvertakenNotice } from "./overtaken-notice.tsx"
import { useAnswer } from "./use-answer.ts"
import { useOvertaken } from "./use-overtaken.ts"
import { WaitingWords } from "./waiting-words.tsx"

interface QuestionCardProps {
  readonly projectId: string
  readonly task: QuestionTask
  /** The questions that wait. */
  readonly listed: ReadonlyArray<QuestionTask>
  readonly canAnswer: boolean
  /** Something is written in it, or no more. */
  readonly onWrite: (task: QuestionTask, isWritten: boolean) => void
}

export const QuestionCard = ({
  projectId,
  task,
  listed,
  canAnswer,
  onWrite
}: QuestionCardProps): ReactNode => {
  const { give, given, isSending, refusal } = useAnswer(projectId, task, () => onWrite(task, false))
  const { left, sentences } = useOvertaken(projectId, [task], listed)
  const isOvertaken = left.length === 0 && !isSending
  const titleId = useId()
  const { attributes, frame } = useLinkedCard(task.id)
  const { options, question } = task.payload
  return (
    <article
      {...attributes}
      aria-labelledby={titleId}
      aria-busy={isSending}
      className={`rounded-2xl border bg-surface p-4 shadow-card transition-opacity duration-150 sm:p-5 ${frame} ${
        isSending ? "opacity-60" : ""
      }`}
    >
      <QuestionHead task={task} titleId={titleId} />
      {isOvertaken && (
        <div className="mt-4 sm:pl-10.5">
          <OvertakenNotice sentences={sentences} />
        </div>
      )}
      {canAnswer && (
        <div className="mt-4 sm:pl-10.5">
          {options === undefined ? (
            <AnswerForm
              question={question}
              isSending={isSending}
              isOvertaken={isOvertaken}
              onAnswer={give}
              onWrite={(isWritten) => onWrite(task, isWritten)}
            />
          ) : (
            <Options options={options} given={given} isSending={isSending} onAnswer={give} />
          )}
        </div>
      )}
      {refusal !== undefined && (
        <p
          role="status"
          className="mt-3 flex items-start gap-2 text-xs font-medium text-caution-ink sm:pl-10.5"
        >
          <CautionIcon className="mt-0.5" />
          <span>{refusal}</span>
        </p>
      )}
    </article>
  )
}

interface QuestionHeadProps {
  readonly task: QuestionTask
  readonly titleId: string
}

const QuestionHead = ({ task, titleId }: QuestionHeadProps): ReactNode => (
  <header className="flex items-start gap-3.5">
    <QuestionMark />
    <div className="min-w-0 grow">
      <h3 id={titleId} className="font-semibold text-pretty whitespace-pre-line">
        <LongText text={task.payload.question} />
      </h3>
      <p className="mt-0.5 flex flex-wrap items-baseline gap-x-2.5 text-xs text-ink-soft">
        <span>
          <Visible text={task.agentName} /> is waiting for your answer
        </span>
        <WaitingWords task={task} />
      </p>
    </div>
    <p className="flex h-7 shrink-0 items-center gap-x-2.5 text-xs text-ink-faint">
      <Link
        to="/tasks/$taskId"
        params={{ taskId: task.id }}
        className="rounded text-center hover:text-ink hover:underline pointer-coarse:min-w-6"
        aria-label={`Link to question ${task.number}`}
      >
        #{task.number}
      </Link>
      <TimeAgo instant={task.createdAt} />
    </p>
  </header>
)

/** The mark of a question, where a suggestion has the mark of its change. */
export const QuestionMark = (): ReactNode => (
  <span
    title="Question"
    className="grid size-7 shrink-0 place-items-center rounded-lg bg-sunken text-ink-soft"
  >
    <QuestionIcon />
    <span className="sr-only">Question: </span>
  </span>
)

interface AnsweringProps {
  readonly isSending: boolean
  readonly onAnswer: (answer: string) => void
}

const Options = ({
  options,
  given,
  isSending,
  onAnswer
}: AnsweringProps & {
  readonly options: ReadonlyArray<string>
  readonly given: string | undefined
}): ReactNode => (
  <div role="group" aria-label="Suggested answers" className="flex flex-wrap gap-2">
    {options.map((option) => (
      <Button key={option} disabled={isSending} wraps onClick={() => onAnswer(option)}>
        <span className="min-w-0">
          {isSending && given === option ? "Answering…" : <Visible text={option} />}
        </span>
      </Button>
    ))}
  </div>
)

interface AnswerFormProps extends AnsweringProps {
  readonly question: string
  /** Somebody else has answered: what is written here can be taken away, and no more sent. */
  readonly isOvertaken: boolean
  readonly onWrite: (isWritten: boolean) => void
}

const AnswerForm = (props: AnswerFormProps): ReactNode => {
  const { question, isSending, isOvertaken, onAnswer, onWrite } = props
  const [text, setText] = useState("")
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (text.trim() !== "" && !isSending && !isOvertaken) onAnswer(text.trim())
      }}
      className="flex flex-wrap items-end gap-2 sm:flex-nowrap"
    >
      <textarea
        aria-label={`Answer: ${visibleText(question)}`}
        rows={2}
        maxLength={limits.maxAnswerCharacters}
        value={text}
        onChange={({ target: { value } }) => {
          if ((value === "") !== (text === "") && !isOvertaken) onWrite(value !== "")
          setText(value)
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
            event.currentTarget.form?.requestSubmit()
        }}
        placeholder="Your answer"
        className="block min-w-0 grow basis-full resize-y rounded-lg border border-line-strong bg-canvas px-3 py-2 text-sm placeholder:text-ink-faint sm:basis-0"
      />
      {isOvertaken ? (
        <Button onClick={() => onWrite(false)}>Close</Button>
      ) : (
        <Button type="submit" weight="primary" disabled={isSending || text.trim() === ""}>
          {isSending ? "Answering…" : "Answer"}
        </Button>
      )}
    </form>
  )
}
