// A picture of a session as large as there is room.
import { Dialog } from "../parts/dialog";
import { FileChip, usePicture, type Shown } from "./picture";

export default function LargePicture({ path, name, onClose }: Shown & { onClose(): void }) {
  const picture = usePicture(path);
  return (
    <Dialog label={name} onClose={onClose} className="w-fit">
      {picture === "none" ? (
        <FileChip path={path} />
      ) : (
        picture && <img src={picture} alt={name} className="max-h-[70dvh] max-w-full object-contain" />
      )}
    </Dialog>
  );
}
