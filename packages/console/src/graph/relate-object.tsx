/**
 * Relates an object to another, which is found by words.
 */
import type { Relationship } from "@tropism/domain/graph"
import { type ReactNode, useState } from "react"
import { useChosenObject } from "../parts/choose-object.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"

interface RelateObjectProps {
  readonly objectId: string
  readonly onClose: () => void
}

export const RelateObject = ({ objectId, onClose }: RelateObjectProps): ReactNode => {
  const [type, setType] = useState("")
  const [direction, setDirection] = useState("out")
  const { objectId: otherId, fields } = useChosenObject("the other object", objectId)
  const { run, isBusy, error } = useWrite<Relationship>("Relate the object", onClose)
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
      {fields}
    </FormDialog>
  )
}
