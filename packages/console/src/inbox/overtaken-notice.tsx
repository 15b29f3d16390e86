/**
 * Says in a dialog who decided meanwhile what it is about.
 */
import type { ReactNode } from "react"
import { MovedNotice } from "../parts/moved-notice.tsx"

/** As many as are read before somebody acts. */
const maxTold = 3

export const OvertakenNotice = ({ sentences }: { readonly sentences: ReadonlyArray<string> }): ReactNode =>
  sentences.length > 0 && (
    <MovedNotice>
      {sentences.slice(0, maxTold).map((sentence) => (
        <p key={sentence} className="[overflow-wrap:anywhere]">
          {sentence}
        </p>
      ))}
      {sentences.length > maxTold && <p>And {sentences.length - maxTold} more were reviewed.</p>}
    </MovedNotice>
  )
