/** Catches what a page throws while it draws: the rest of the window continues. */
import { Component, type ErrorInfo, type ReactNode } from 'react';
import { isMissingCode } from '../api/api-error.ts';
import { ErrorPanel } from './state.tsx';

interface Props {
  readonly children: ReactNode;
  /** Another value starts anew, e.g. the address of the page. */
  readonly resetBy: string;
}

interface State {
  readonly error: unknown;
  readonly resetBy: string;
}

const none = Symbol('no error');

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: none, resetBy: this.props.resetBy };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: State): State | null {
    return props.resetBy === state.resetBy ? null : { error: none, resetBy: props.resetBy };
  }

  override componentDidCatch(error: unknown, info: ErrorInfo): void {
    // A person with the console open gets the place in the code.
    reportError(new Error(`A page failed${info.componentStack ?? ''}`, { cause: error }));
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === none) return this.props.children;
    // Code that did not come is remembered as failed: only a new page requests it again.
    const isMissing = error instanceof Error && isMissingCode(error.message);
    const retry = (): void => (isMissing ? location.reload() : this.setState({ error: none }));
    return <ErrorPanel error={error} onRetry={retry} />;
  }
}
