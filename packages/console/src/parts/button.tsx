/**
 * The buttons of the console, in three weights, and the key that does the same.
 *
 * A button that can do nothing keeps the focus: what a browser disables while
 * something is sent loses it, and whoever pressed it would go on from the top
 * of the page.
 */
import type { ButtonHTMLAttributes, MouseEvent, ReactNode, Ref } from "react"

const base =
  "inline-flex items-center justify-center gap-2 rounded-lg font-medium transition-colors duration-100 aria-disabled:cursor-not-allowed aria-disabled:opacity-50"

const weights = {
  primary: "bg-leaf text-on-leaf not-aria-disabled:hover:bg-leaf-strong",
  plain: "border border-line-strong bg-surface text-ink not-aria-disabled:hover:bg-sunken",
  quiet: "text-ink-soft not-aria-disabled:hover:bg-sunken not-aria-disabled:hover:text-ink"
} as const

const sizes = {
  normal: "px-3.5 text-sm pointer-coarse:px-5",
  small: "px-2.5 text-xs"
} as const

const heights = {
  normal: "h-9 whitespace-nowrap pointer-coarse:h-11",
  small: "h-8 whitespace-nowrap"
} as const

const wrapping = "min-h-9 max-w-full py-1.5 text-left wrap-anywhere pointer-coarse:min-h-11"

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly weight?: keyof typeof weights
  readonly size?: keyof typeof sizes
  /** Lets its words go over several lines, for words that others have chosen. */
  readonly wraps?: boolean
  /** The key that does the same; shown where there is a keyboard. */
  readonly shortcut?: string
  /** The key acts elsewhere now. Its place is kept: a button that moves under a press would not hear it. */
  readonly isShortcutElsewhere?: boolean
  readonly ref?: Ref<HTMLButtonElement>
}

/** **Gotchas** `disabled` is said to whoever cannot see it, and no press is heard; the focus may come and stay. */
export const Button = ({
  weight = "plain",
  size = "normal",
  wraps = false,
  shortcut,
  isShortcutElsewhere = false,
  disabled: isDead = false,
  onClick,
  className = "",
  children,
  ...rest
}: ButtonProps): ReactNode => (
  <button
    type="button"
    className={`${base} ${weights[weight]} ${sizes[size]} ${wraps ? wrapping : heights[size]} ${className}`}
    {...rest}
    aria-disabled={isDead || undefined}
    onClick={isDead ? doNothing : onClick}
  >
    {children}
    {shortcut !== undefined && (
      <kbd
        aria-hidden="true"
        className={`hidden min-w-4 rounded border border-current px-1 text-center font-sans text-[0.6875rem] leading-4 opacity-60 hover-device:inline-block ${isShortcutElsewhere ? "invisible" : ""}`}
      >
        {shortcut}
      </kbd>
    )}
  </button>
)

/** Of the button that sends a form this is also what Enter in a field of it does. */
const doNothing = (event: MouseEvent): void => event.preventDefault()

/** A key as it is printed on a keyboard. */
export const Key = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <kbd className="inline-grid h-6 min-w-6 place-items-center rounded-md border border-line-strong bg-sunken px-1.5 font-sans text-xs text-ink-soft">
    {children}
  </kbd>
)
