// Schedules: when tasks begin by the clock, what became of each time, and one to begin now.
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client";
import type { Schedule } from "../api/types";
import { Empty, Facts, Frame, State, useLoaded } from "../parts/automation";
import { Code } from "../parts/code";
import { Confirm } from "../parts/dialog";
import { Outcomes } from "../parts/outcomes";
import { moment, until } from "../parts/text";
import { orSay, say } from "../parts/toasts";

export const OVERLAPS = {
  skip: "leave a time out while the task before is at work",
  queue: "wait until the task before is over",
  cancelOld: "cancel the task before",
};
export const CATCH_UPS = {
  last: "the last, if it is not older than an hour",
  all: "all, a hundred at most",
  none: "none",
};

export default function SchedulesPage({ name }: { name?: string }) {
  return name === undefined ? <All /> : <One key={name} name={name} />;
}

function timesOf({ cron, at, timeZone }: Schedule): string {
  return cron ? `${cron} · ${timeZone ?? "UTC"}` : `once at ${moment(at ?? "")}`;
}

function All() {
  const { value, error } = useLoaded(api.schedules);
  return (
    <Frame
      here="schedules"
      error={error}
      actions={
        <Link className="btn" href="/schedules/_new">
          <Plus size={13} aria-hidden /> New schedule
        </Link>
      }
    >
      {!value?.length && !error && (
        <Empty loaded={Boolean(value)}>None yet. A schedule begins tasks of a template by the clock.</Empty>
      )}
      <ul aria-label="Schedules">
        {value?.map((schedule) => (
          <li key={schedule.id}>
            <Link
              href={`/schedules/${schedule.name}`}
              className="flex flex-wrap items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover sm:px-4"
            >
              <span className="font-medium">{schedule.name}</span>
              {schedule.paused && <State state="paused" />}
              <span className="min-w-0 flex-1 truncate text-dim">
                {schedule.template} · {timesOf(schedule)}
              </span>
              {schedule.nextRuns?.[0] && <span className="text-2xs text-dim">next {until(schedule.nextRuns[0])}</span>}
            </Link>
          </li>
        ))}
      </ul>
    </Frame>
  );
}

function One({ name }: { name: string }) {
  const { value: schedule, error, reload } = useLoaded(useCallback(() => api.schedule(name), [name]));
  const runs = useLoaded(useCallback(() => api.scheduleRuns(name), [name]));
  const [asking, setAsking] = useState(false);
  const [, go] = useLocation();
  const pause = async (paused: boolean) => {
    if (await orSay(api.editSchedule(name, { paused }))) say(paused ? "It is paused." : "It goes on.");
    await reload();
  };
  const run = async () => {
    if (await orSay(api.runSchedule(name))) say("Its task begins.");
    await runs.reload();
  };
  return (
    <Frame
      here="schedules"
      name={name}
      error={error ?? runs.error}
      actions={
        schedule && (
          <>
            <button type="button" className="btn" onClick={() => void run()}>
              Run now
            </button>
            <button type="button" className="btn" onClick={() => void pause(!schedule.paused)}>
              {schedule.paused ? "Go on" : "Pause"}
            </button>
            <button type="button" className="btn text-bad" onClick={() => setAsking(true)}>
              Remove
            </button>
          </>
        )
      }
    >
      {schedule && <About schedule={schedule} />}
      <h2 className="px-3 pt-2 font-medium sm:px-4">Runs</h2>
      {!runs.value?.length && <Empty loaded={Boolean(runs.value)}>No time has come yet.</Empty>}
      <Outcomes
        label="Runs"
        of={(runs.value ?? []).map((each) => ({ ...each, id: each.due, at: each.due, about: moment(each.due) }))}
      />
      {asking && (
        <Confirm
          title={`Remove ${name}?`}
          text="No task begins by it any more. Tasks that it began go on."
          verb="Remove"
          onClose={() => setAsking(false)}
          onConfirm={() => void orSay(api.removeSchedule(name)).then((done) => done && go("/schedules"))}
        />
      )}
    </Frame>
  );
}

function About({ schedule }: { schedule: Schedule }) {
  const { nextRuns = [], inputs = {} } = schedule;
  return (
    <div className="border-b border-line/60 p-3 sm:px-4">
      <Facts
        of={{
          State: schedule.paused && <State state="paused" />,
          Times: timesOf(schedule),
          "Next runs": nextRuns.length > 0 && (
            <ol aria-label="Next runs">
              {nextRuns.map((run) => (
                <li key={run}>
                  <time dateTime={run}>{moment(run)}</time>
                </li>
              ))}
            </ol>
          ),
          Template: (
            <Link className="underline" href={`/templates/${schedule.template.split("@")[0]}`}>
              {schedule.template}
            </Link>
          ),
          Inputs: Object.keys(inputs).length > 0 && <Code text={JSON.stringify(inputs, null, 2)} language="json" />,
          Prompt: schedule.prompt,
          Overlap: OVERLAPS[schedule.overlap ?? "skip"],
          "Catch up": `${schedule.catchUp ?? "last"} of the times that were missed`,
          Jitter: Boolean(schedule.jitterSeconds) && `up to ${schedule.jitterSeconds} s`,
        }}
      />
    </div>
  );
}
