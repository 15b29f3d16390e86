/**
 * What the address says behind the question mark: filters, the open tab, the chosen event.
 *
 * All of it is text. A change replaces the entry in the browser's history, so
 * that "back" leaves the page and does not walk through every letter typed.
 */
import { useNavigate, useSearch } from "@tanstack/react-router"
import { useCallback } from "react"

export type Address = Readonly<Record<string, string | undefined>>

/** The parameters and how to change some; undefined or nothing leaves one out. */
export const useAddress = (): readonly [Address, (changes: Address) => void] => {
  const address: Address = useSearch({ strict: false })
  const navigate = useNavigate()
  const change = useCallback(
    (changes: Address) => {
      navigate({
        to: ".",
        replace: true,
        resetScroll: false,
        search: (before) => withoutNothing({ ...before, ...changes })
      })
    },
    [navigate]
  )
  return [address, change]
}

const withoutNothing = (address: Address): Address =>
  Object.fromEntries(Object.entries(address).filter(([, value]) => value !== undefined && value !== ""))
