/**
 * A JSON value as text: escaped, hidden characters shown, folded when it is long, to be copied whole.
 */
import { beginningOf } from "@tropism/domain/text-beginning"
import { type ReactNode, useMemo, useState } from "react"
import { limits } from "../limits.ts"
import { Button } from "./button.tsx"
import { CopyButton } from "./copy-button.tsx"
import { Visible } from "./visible.tsx"

interface JsonViewProps {
  readonly value: unknown
  /** What it is, for who does not see it. */
  readonly label: string
}

export const JsonView = ({ value, label }: JsonViewProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "undefined", [value])
  const isLong = text.length > limits.maxJsonCharacters
  const shown = isLong && !isOpen ? beginningOf(text, limits.maxJsonCharacters) : text
  return (
    <figure className="m-0 rounded-xl border border-line bg-sunken">
      <figcaption className="flex items-center justify-between gap-3 border-b border-line py-1 pr-1.5 pl-3.5 text-2xs text-ink-faint">
        <span>{label}</span>
        <CopyButton text={text} label={label} />
      </figcaption>
      <pre className="px-3.5 py-3 font-mono text-xs leading-5 whitespace-pre-wrap [overflow-wrap:anywhere]">
        {shown.split("\n").map((line, index) => (
          // Lines of one text never move, so their place names them.
          <span key={index} className="block min-h-5">
            <Visible text={line} />
          </span>
        ))}
      </pre>
      {isLong && !isOpen && (
        <p className="border-t border-line px-3.5 py-2 text-xs text-ink-soft">
          {(text.length - shown.length).toLocaleString()} more characters.{" "}
          <Button size="small" weight="quiet" onClick={() => setIsOpen(true)}>
            Show all
          </Button>
        </p>
      )}
    </figure>
  )
}
