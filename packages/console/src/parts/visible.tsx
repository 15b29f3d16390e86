/**
 * Foreign text on the page: escaped by React, every hidden character shown as a mark.
 */
import type { ReactNode } from "react"
import { visiblePieces } from "../words/visible-text.ts"

interface VisibleProps {
  readonly text: string
  /** Shows white space at the ends and line breaks too; for values that are compared. */
  readonly exact?: boolean
}

/** Text from agents, people or the graph. */
export const Visible = ({ text, exact = false }: VisibleProps): ReactNode => (
  <bdi className="foreign">
    {visiblePieces(text, { exact }).map((piece, index) =>
      piece.name === undefined ? (
        piece.text
      ) : (
        <span
          // The pieces of one text never move, so their place names them.
          key={index}
          role="img"
          aria-label={piece.name}
          title={piece.name}
          className="mx-px rounded-[3px] bg-caution px-0.5 font-mono text-[0.8em] text-caution-ink select-none"
        >
          {piece.text}
        </span>
      )
    )}
  </bdi>
)
