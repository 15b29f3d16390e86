/**
 * The few pictures of the console, drawn on a 16-unit grid in the colour of the text around them.
 *
 * They are decoration: whatever a picture says is said in words beside it.
 */
import type { ReactNode } from "react"

interface IconProps {
  readonly size?: keyof typeof sizes
  readonly className?: string
}

const sizes = { tiny: "size-3", small: "size-3.5", normal: "size-4" } as const

/** A picture from its paths. */
export const drawn = (paths: ReactNode) => {
  const Icon = ({ size = "normal", className = "" }: IconProps): ReactNode => (
    <svg
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      className={`shrink-0 ${sizes[size]} ${className}`}
    >
      {paths}
    </svg>
  )
  return Icon
}

export const CheckIcon = drawn(<path d="m3 8.5 3.2 3.2L13 4.8" />)
export const CrossIcon = drawn(<path d="m4 4 8 8M12 4l-8 8" />)
export const PlusIcon = drawn(<path d="M8 3.5v9M3.5 8h9" />)
export const MinusIcon = drawn(<path d="M3.5 8h9" />)
export const PencilIcon = drawn(<path d="m3 13 .6-2.8 7-7 2.2 2.2-7 7L3 13Z" />)
export const ArrowIcon = drawn(<path d="M3 8h10M9.5 4.5 13 8l-3.5 3.5" />)
export const ChevronIcon = drawn(<path d="m6 4 4 4-4 4" />)
export const LinkIcon = drawn(
  <path d="M6.5 9.5 9.5 6.5M7 4.5l1.2-1.2a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.2 1.2a3.2 3.2 0 0 1-4.5-4.5L4.5 7" />
)
export const UnlinkIcon = drawn(
  <path d="M7 4.5l1.2-1.2a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.2 1.2a3.2 3.2 0 0 1-4.5-4.5L4.5 7M3 3l10 10" />
)
export const ClockIcon = drawn(
  <>
    <circle cx="8" cy="8" r="5.5" />
    <path d="M8 5v3.2l2 1.3" />
  </>
)
export const PauseIcon = drawn(<path d="M6 4.5v7M10 4.5v7" />)
export const CautionIcon = drawn(<path d="M8 2.8 14 13H2L8 2.8ZM8 6.8v2.7M8 11.3v.1" />)
export const KeyboardIcon = drawn(
  <>
    <rect x="1.5" y="4" width="13" height="8.5" rx="1.5" />
    <path d="M4 7h.01M6.7 7h.01M9.3 7h.01M12 7h.01M5 10h6" />
  </>
)
export const QuestionIcon = drawn(<path d="M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.2 8 10M8 12.5v.1" />)
export const BookIcon = drawn(
  <path d="M3 3.5h3.5A1.5 1.5 0 0 1 8 5v8a1.5 1.5 0 0 0-1.5-1.5H3v-8ZM13 3.5H9.5A1.5 1.5 0 0 0 8 5v8a1.5 1.5 0 0 1 1.5-1.5H13v-8Z" />
)

export const MenuIcon = drawn(<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />)
export const CopyIcon = drawn(
  <>
    <rect x="5.5" y="5.5" width="7.5" height="7.5" rx="1.5" />
    <path d="M10.5 5.5V3H3v7.5h2.5" />
  </>
)
export const SearchIcon = drawn(
  <>
    <circle cx="7" cy="7" r="4" />
    <path d="m10 10 3.5 3.5" />
  </>
)

/** The shoot that turns: the mark of the product. */
export const Mark = ({ className = "size-7" }: { readonly className?: string }): ReactNode => (
  <svg viewBox="0 0 32 32" aria-hidden="true" className={`shrink-0 ${className}`}>
    <rect width="32" height="32" rx="8" className="fill-leaf" />
    <g fill="none" strokeWidth="2.4" strokeLinecap="round" strokeLinejoin="round" className="stroke-on-leaf">
      <path d="M11 26c0-7 2-11 7.5-13.5" />
      <path d="M18.5 12.5c-.8-4 1.5-6.8 6-7 .7 4.5-1.7 7.2-6 7Z" className="fill-on-leaf" />
      <path d="M12.3 18.5c-1-3.2-3.3-4.7-6.3-4.3.4 3.2 3 5 6.3 4.3Z" className="fill-on-leaf" />
    </g>
  </svg>
)
