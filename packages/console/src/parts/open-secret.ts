/**
 * Whether a secret is open that is shown once: it goes with the session, and whoever is signed out meanwhile is told so.
 *
 * Somebody may have ended the session on purpose, so what it showed does not stay on the screen.
 */
import { createContext } from "react"

/** Is told that one is open, and that it is no more. */
export const OpenSecret = createContext<(isOpen: boolean) => void>(() => {})
