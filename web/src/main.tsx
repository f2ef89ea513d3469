import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { pair } from "./api/connection";
import { App } from "./app";
import { Boundary } from "./parts/boundary";
import { startWorker } from "./state/attention";
import { startTheme } from "./state/theme";
import "./style.css";

pair();
startTheme();
startWorker();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Boundary what="The page">
      <App />
    </Boundary>
  </StrictMode>,
);
