// A picture that the session names, read from the server by its path; where it cannot be had, its name.
import { FileText } from "lucide-react";
import { createContext, useContext, useEffect, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { fileHref } from "../state/paths";
import { useLive } from "./context";

export interface Shown {
  path: string;
  name: string;
}

/** Shows a picture large, outside of its row, which may leave the screen meanwhile. */
export const Enlarge = createContext<(picture: Shown) => void>(() => {});

const nameOf = (path: string) => path.split("/").pop() ?? path;

export function Picture({ path, name = nameOf(path) }: { path: string; name?: string }) {
  const picture = usePicture(path);
  const enlarge = useContext(Enlarge);
  if (picture === "none") return <FileChip path={path} />;
  return (
    <figure className="w-fit max-w-full self-start">
      <button
        type="button"
        className="block max-w-full rounded border border-line bg-sunken p-1 hover:bg-hover"
        aria-label={`Enlarge ${name}`}
        onClick={() => enlarge({ path, name })}
      >
        <span className="flex h-40 max-w-full min-w-24 items-center justify-center">
          {picture && <img src={picture} alt={name} className="max-h-full max-w-full object-contain" />}
        </span>
      </button>
      <figcaption className="mt-0.5 truncate text-2xs text-dim" title={path}>
        {name}
      </figcaption>
    </figure>
  );
}

/** An address of the picture's data for as long as it is shown; "none" if there is no such picture. */
export function usePicture(path: string): string | undefined {
  const { id } = useLive();
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const control = new AbortController();
    let made = "";
    api.picture(id, path, control.signal).then(
      (data) => setUrl((made = URL.createObjectURL(data))),
      () => control.signal.aborted || setUrl("none"),
    );
    return () => {
      control.abort();
      URL.revokeObjectURL(made);
    };
  }, [id, path]);
  return url;
}

export function FileChip({ path }: { path: string }) {
  const { id } = useLive();
  return (
    <Link className="chip max-w-full self-start hover:bg-hover" title={path} href={fileHref(id, { path })}>
      <FileText size={13} aria-hidden />
      <span className="truncate">{nameOf(path)}</span>
    </Link>
  );
}
