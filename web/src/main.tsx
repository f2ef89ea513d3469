import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { Boundary } from "./parts/boundary";
import { startWorker } from "./state/attention";
import { startTheme } from "./state/theme";
import "./style.css";

startTheme();
startWorker();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Boundary what="The page">
      <App />
    </Boundary>
  </StrictMode>,
);
