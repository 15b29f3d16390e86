/**
 * What the fields of a form are called, so that whatever is told of the form as a whole speaks of them as the form does.
 *
 * A field says its own name while it is drawn; nobody keeps a second list.
 */
import { createContext, type ReactNode, useContext, useEffect, useState } from "react"
import { fieldName } from "../words/place-name.ts"

/** The labels by the places of the fields in what is sent. */
const Labels = createContext<Map<string, string>>(new Map())

export const FieldLabels = ({ children }: { readonly children: ReactNode }): ReactNode => {
  const [labels] = useState(() => new Map<string, string>())
  return <Labels value={labels}>{children}</Labels>
}

/** Says what stands at a place, for as long as it is drawn. */
export const useFieldLabel = (pointer: string | undefined, label: string): void => {
  const labels = useContext(Labels)
  useEffect(() => {
    if (pointer === undefined) return
    labels.set(pointer, label)
    return () => {
      labels.delete(pointer)
    }
  }, [labels, pointer, label])
}

/** Names a place as the field does that holds it; where none does, by the way to it. */
export const usePlaceNames = (): ((pointer: string) => string) => {
  const labels = useContext(Labels)
  return (pointer) => labelled(labels, pointer) ?? fieldName(pointer)
}

/** Of a list, whose fields are called alike, the place is counted from one. */
const labelled = (labels: ReadonlyMap<string, string>, pointer: string): string | undefined => {
  const [place, label] =
    [...labels]
      .filter(([each]) => pointer === each || pointer.startsWith(`${each}/`))
      .toSorted(([one], [other]) => other.length - one.length)
      .at(0) ?? []
  if (place === undefined) return undefined
  const row = /\/(\d+)\//.exec(place)?.[1]
  const within = fieldName(pointer.slice(place.length))
  return `${label}${row === undefined ? "" : ` (no. ${Number(row) + 1})`}${within === "" ? "" : ` › ${within}`}`
}
