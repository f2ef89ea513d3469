/** What the server says of a request that it refuses, or cannot do. */
export interface Problem {
  /** An address that stands for the kind of problem. */
  type: string;
  /** The kind of problem, for people. */
  title: string;
  /** The status of the answer. */
  status: number;
  /** The kind of problem, for programs; it stays the same between versions. */
  code: string;
  /** What happened and what to do, for people. */
  detail: string;
  /** Which request it was. */
  instance?: string | null;
  /** For bad input: what is wrong with each field. */
  errors?: Record<string, string[]> | null;
  /** More about it, by the kind of problem. */
  details?: Record<string, unknown> | null;
}

/** The server answered with a problem; `code` is stable, `message` is for people. */
export class OstlerError extends Error {
  override readonly name = "OstlerError";
  /** The kind of problem. */
  readonly code: string;
  /** The status of the answer. */
  readonly status: number;
  /** All that the server said. */
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
    this.code = problem.code;
    this.status = problem.status;
  }
}

/** The server could not be reached, or the connection to it was lost. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** What came is not what the server of this SDK sends, such as a page of a proxy or a log with a hole in it. */
export class BadAnswerError extends Error {
  override readonly name = "BadAnswerError";
}

/** The model calls a tool of the client, and there is no function that answers. */
export class UnansweredToolError extends Error {
  override readonly name = "UnansweredToolError";
  /** What `session.answerCall` answers. */
  readonly questionId: string;
  /** The name of the tool. */
  readonly tool: string;

  constructor(questionId: string, tool: string) {
    super(
      `The agent calls the client's tool '${tool}' and nothing answers. Give \`tools\` to run(), ` +
        `or answer question '${questionId}'.`,
    );
    this.questionId = questionId;
    this.tool = tool;
  }
}

/** The problem in an answer, whatever stands between may have made of it. */
export async function problemOf(response: Response): Promise<Error> {
  const text = await response.text().catch(() => "");
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.code === "string") return new OstlerError(problem);
  } catch {
    // not a problem document
  }
  const detail = `The answer has status ${response.status} and is not from an Ostler server: ${text.slice(0, 200)}`;
  return new OstlerError({
    type: "about:blank",
    title: "Bad answer",
    status: response.status,
    code: "bad_answer",
    detail,
  });
}
