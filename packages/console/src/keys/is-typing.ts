/**
 * Whether a key press belongs to a field or a dialog, so that no single key may mean anything else.
 */

/** A field in which letters are written; boxes that are ticked are none. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.matches("textarea, select, input:not([type=checkbox]):not([type=radio])"))

/** While a dialog is open the page behind it hears no keys. */
export const isDialogOpen = (): boolean =>
  document.querySelector("[role=dialog], [role=alertdialog]") !== null

/** The browser's own shortcuts and half-composed letters are left alone. */
export const isPlain = ({ ctrlKey, metaKey, altKey, isComposing }: KeyboardEvent): boolean =>
  !ctrlKey && !metaKey && !altKey && !isComposing
