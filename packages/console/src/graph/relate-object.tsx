/**
 * Relates an object to another, which is found by words.
 */
import type { Relationship } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, type SubmitEvent, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useLater } from "../parts/use-later.ts"
import { objectSearchQuery } from "../server/graph-queries.ts"
import { visibleText } from "../words/visible-text.ts"
import { objectName } from "./object-words.ts"
import { useGraphWrite } from "./use-graph-write.ts"

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
  const { mutate, isPending, error } = useGraphWrite<Relationship>(onClose)
  const relate = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const [fromId, toId] = direction === "out" ? [objectId, otherId] : [otherId, objectId]
    mutate({ path: "relationships", request: { method: "POST", body: { type, fromId, toId } } })
  }
  return (
    <DialogFrame isOpen title="Relate it to something" onClose={onClose} returnsFocus>
      <form onSubmit={relate} className="mt-4 grid gap-4">
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
        {error !== null && <Failure error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" weight="primary" disabled={isPending || otherId === "" || type === ""}>
            Relate
          </Button>
        </div>
      </form>
    </DialogFrame>
  )
}
