// An error in one piece of the page stays in that piece.
import { Component, type ReactNode } from "react";

interface Props {
  what: string;
  children: ReactNode;
}

export class Boundary extends Component<Props, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div role="alert" className="my-1 rounded-md border border-line bg-bad-soft px-3 py-2 text-bad">
        {this.props.what} cannot be shown: {this.state.error.message}{" "}
        <button type="button" className="thumb underline" onClick={() => this.setState({ error: undefined })}>
          Try again
        </button>
      </div>
    );
  }
}
