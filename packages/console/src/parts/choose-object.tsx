/**
 * Fields that find an object by words and choose it.
 */
import { useQuery } from "@tanstack/react-query"
import { beginningOf } from "@tropism/domain/text-beginning"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { objectSearchQuery } from "../server/graph-queries.ts"
import { objectName } from "../words/object-name.ts"
import { visibleText } from "../words/visible-text.ts"
import { ChoiceField, TextField } from "./form-fields.tsx"
import { useLater } from "./use-later.ts"

interface ChosenObject {
  /** The chosen object's id; nothing while none is found. */
  readonly objectId: string
  readonly fields: ReactNode
}

/** The fields, called `Find ‹what› by words` and `‹What›`, and what is chosen: the first that is found, until somebody chooses. */
export const useChosenObject = (what: string, without?: string): ChosenObject => {
  const { project } = useConsole()
  const [typed, setTyped] = useState("")
  const [words, setWords] = useState("")
  const [chosen, setChosen] = useState("")
  const later = useLater(limits.searchPauseMs)
  const found = useQuery({
    ...objectSearchQuery(project.id, words, limits.objectsToChoose),
    enabled: words !== ""
  })
  const objects = found.data?.items.filter(({ id }) => id !== without) ?? []
  const objectId = objects.some(({ id }) => id === chosen) ? chosen : (objects[0]?.id ?? "")
  const fields = (
    <>
      <TextField
        label={`Find ${what} by text`}
        name="objectWords"
        value={typed}
        onChange={(text) => {
          setTyped(text)
          later(() => setWords(beginningOf(text.trim(), limits.maxSearchCharacters)))
        }}
      />
      <ChoiceField
        label={what.replace(/^./, (letter) => letter.toUpperCase())}
        name="objectId"
        value={objectId}
        choices={
          objects.length === 0
            ? [{ value: "", label: words === "" ? "Type to search" : "No results" }]
            : objects.map((object) => ({
                value: object.id,
                label: visibleText(`${objectName(object)} (${object.type})`)
              }))
        }
        onChange={setChosen}
      />
    </>
  )
  return { objectId, fields }
}
