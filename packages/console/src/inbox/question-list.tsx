/**
 * What agents want to know, above what they suggest: a run waits behind each question.
 *
 * The longest waiting comes first, and nothing that changes while a question
 * waits moves it, so no field jumps under somebody who writes in it. One that
 * somebody else answers meanwhile stays as long as something is written in it,
 * and who leaves the inbox by then is asked.
 */
import type { QuestionTask } from "@tropism/domain/task"
import { type ReactNode, useCallback, useState } from "react"
import { pageAt } from "../frame/pages.ts"
import { AskBeforeLeaving } from "../parts/ask-before-leaving.tsx"
import { QuestionCard } from "./question-card.tsx"

interface QuestionListProps {
  readonly projectId: string
  readonly questions: ReadonlyArray<QuestionTask>
  readonly canAnswer: boolean
}

export const QuestionList = ({ projectId, questions, canAnswer }: QuestionListProps): ReactNode => {
  const { isWritten, shown, write } = useWritten(questions)
  return shown.length === 0 ? null : (
    <section aria-labelledby="questions" className="mb-10 min-w-0">
      <header className="mb-3 px-1">
        <h2 id="questions" className="text-base">
          <span className="font-semibold">Questions</span> <span className="text-ink-soft">from agents</span>
          <span className="ml-2.5 rounded-full bg-line/60 px-2 py-0.5 text-xs text-ink-soft">
            {questions.length}
          </span>
        </h2>
      </header>
      <ol className="grid grid-cols-1 gap-3">
        {shown.map((task) => (
          <li key={task.id} className="enter min-w-0">
            <QuestionCard
              projectId={projectId}
              task={task}
              listed={questions}
              canAnswer={canAnswer}
              onWrite={write}
            />
          </li>
        ))}
      </ol>
      <AskBeforeLeaving isUnsaved={isWritten} staysAt={isInbox} />
    </section>
  )
}

/** A link to a task leads to another place of the same page. */
const isInbox = (pathname: string): boolean => pageAt(pathname)?.to === "/"

/** The questions that wait, and with them those in which somebody has begun to write. */
const useWritten = (questions: ReadonlyArray<QuestionTask>) => {
  const [written, setWritten] = useState<ReadonlyArray<QuestionTask>>([])
  const write = useCallback((task: QuestionTask, isWritten: boolean) => {
    setWritten((before) => {
      const others = before.filter(({ id }) => id !== task.id)
      return isWritten ? [...others, task] : others.length === before.length ? before : others
    })
  }, [])
  const listed = new Set(questions.map(({ id }) => id))
  const left = written.filter(({ id }) => !listed.has(id))
  const shown =
    left.length === 0
      ? questions
      : [...questions, ...left].toSorted((one, other) => one.number - other.number)
  return { isWritten: written.length > 0, shown, write }
}
