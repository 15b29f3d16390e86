/**
 * What is typed into a field of the address: it goes there when nobody has typed for a moment, and at once when they leave.
 */
import { type ChangeEvent, useState } from "react"
import { limits } from "../limits.ts"
import { useLater } from "./use-later.ts"

/** What a field needs to show what is typed, and what the address says where nothing is. */
export const useTyped = (value: string, onChange: (value: string) => void) => {
  const [typed, setTyped] = useState<string>()
  const later = useLater(limits.searchPauseMs)
  return {
    value: typed ?? value,
    onChange: (event: ChangeEvent<HTMLInputElement>) => {
      const { value: now } = event.target
      setTyped(now)
      later(() => onChange(now))
    },
    onBlur: () => {
      // What is pressed next counts behind what was typed.
      later(() => {})
      if (typed !== undefined && typed !== value) onChange(typed)
      setTyped(undefined)
    }
  }
}
