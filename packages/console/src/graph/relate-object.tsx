/**
 * Relates an object to another, which is found by words.
 */
import type { Relationship } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useLater } from "../parts/use-later.ts"
import { objectSearchQuery } from "../server/graph-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"
import { objectName } from "./object-words.ts"

interface RelateObjectProps {
  readonly objectId: string
  readonly onClose: () => void
}

export const RelateObject = ({ objectId, onClose }: RelateObjectProps): ReactNode => {
  const { project } = useConsole()
  const [type, setType] = useState("")
  const [direction, setDirection] = useState("out")
  const [typed, setTyped] = useState("")
  const [words, setWords] = useState("")
  const [chosen, setChosen] = useState("")
  const later = useLater(limits.searchPauseMs)
  const found = useQuery({
    ...objectSearchQuery(project.id, words, limits.objectsToChoose),
    enabled: words !== ""
  })
  const others = found.data?.items.filter(({ id }) => id !== objectId) ?? []
  const otherId = others.some(({ id }) => id === chosen) ? chosen : (others[0]?.id ?? "")
  const { run, isBusy, error } = useWrite<Relationship>(onClose)
  const relate = () => {
    const [fromId, toId] = direction === "out" ? [objectId, otherId] : [otherId, objectId]
    run({ path: "relationships", method: "POST", body: { type, fromId, toId } })
  }
  return (
    <FormDialog
      title="Relate it to something"
      verb="Relate"
      isBusy={isBusy}
      isReady={otherId !== "" && type !== ""}
      error={error}
      pointers={["/type"]}
      onSubmit={relate}
      onClose={onClose}
    >
      <TextField
        label="Type"
        hint="A name such as DEPENDS_ON"
        pointer="/type"
        error={error}
        value={type}
        onChange={setType}
        isRequired
        hasFirstFocus
      />
      <ChoiceField
        label="Direction"
        value={direction}
        choices={[
          { value: "out", label: "From this object to the other" },
          { value: "in", label: "From the other object to this" }
        ]}
        onChange={setDirection}
      />
      <TextField
        label="Find the other by words"
        value={typed}
        onChange={(text) => {
          setTyped(text)
          later(() => setWords(text.trim().slice(0, limits.maxSearchCharacters)))
        }}
      />
      <ChoiceField
        label="The other object"
        value={otherId}
        choices={
          others.length === 0
            ? [{ value: "", label: words === "" ? "Type words to find it" : "Nothing is found" }]
            : others.map((object) => ({
                value: object.id,
                label: visibleText(`${objectName(object)} (${object.type})`)
              }))
        }
        onChange={setChosen}
      />
    </FormDialog>
  )
}
