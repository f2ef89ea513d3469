// A question before something cannot be taken back; its code is loaded when it is first asked.
import { lazy, Suspense, type ComponentProps } from "react";
import type { Confirm as Question } from "./dialog";

const Asked = lazy(() => import("./dialog").then(({ Confirm }) => ({ default: Confirm })));

export function Confirm(props: ComponentProps<typeof Question>) {
  return (
    <Suspense fallback={null}>
      <Asked {...props} />
    </Suspense>
  );
}
