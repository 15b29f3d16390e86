/**
 * The messages that a model was shown, each under who said it, and all of them as JSON for who wants the bytes.
 */
import { type ReactNode, useMemo, useState } from "react"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { LongText } from "../parts/long-text.tsx"
import { Visible } from "../parts/visible.tsx"
import { countText } from "../words/amounts.ts"
import { shownMessage, type ShownPart } from "./shown-message.ts"

interface ModelMessagesProps {
  /** What the model read, or what it answered. */
  readonly part: "read" | "answered"
  /** What they are, for who does not see them. */
  readonly label: string
  readonly messages: ReadonlyArray<unknown>
}

export const ModelMessages = ({ part, label, messages }: ModelMessagesProps): ReactNode => {
  const [isJson, setIsJson] = useState(false)
  const [isWhole, setIsWhole] = useState(false)
  const shown = useMemo(() => messages.map(shownMessage), [messages])
  // What was said last is what the answer follows from.
  const hidden = isWhole ? 0 : Math.max(0, shown.length - limits.maxMessages)
  return (
    <section aria-label={label} data-part={part} className="grid gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="text-xs text-ink-faint">
          {label}: {countText(messages.length, "message")}
        </p>
        <Button size="small" weight="quiet" aria-pressed={isJson} onClick={() => setIsJson(!isJson)}>
          {isJson ? "As conversation" : "As JSON"}
        </Button>
      </div>
      {isJson ? (
        <JsonView label={label} value={messages} />
      ) : (
        <ol aria-label={label} className="grid gap-2">
          {hidden > 0 && (
            <li className="text-xs">
              <Button size="small" weight="quiet" onClick={() => setIsWhole(true)}>
                Show {countText(hidden, "earlier message")}
              </Button>
            </li>
          )}
          {shown.slice(hidden).map(({ role, parts }, place) => (
            // Messages of one request never move, so their place names them.
            <li key={place} className="min-w-0 rounded-lg border border-line px-3 py-2">
              <p className="text-2xs font-semibold tracking-wide text-ink-faint">
                <Visible text={role} />
              </p>
              {parts.map((part, index) => (
                <Part key={index} part={part} />
              ))}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

const Part = ({ part }: { readonly part: ShownPart }): ReactNode => {
  if (part.type === "text")
    return (
      <p className="mt-1 text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
        <LongText text={part.text} />
      </p>
    )
  return (
    <details className="mt-1">
      <summary className="cursor-pointer text-sm">
        {sayings[part.type]}{" "}
        <code className="font-mono text-xs">
          <Visible text={part.name} />
        </code>
        {part.type === "result" && part.hasFailed && (
          <span className="text-xs text-removed-ink"> failed</span>
        )}
      </summary>
      <div className="mt-2">
        <JsonView label={`${sayings[part.type]} ${part.name}`} value={part.value} />
      </div>
    </details>
  )
}

const sayings = { call: "Call of", result: "Result of", other: "Part of type" } as const
