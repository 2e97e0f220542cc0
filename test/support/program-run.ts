/** The program as a process of its own, and what it has said so far. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { nodeEnvironment, programArguments } from './program.ts';
import { until } from './postgres-store.ts';

export class ProgramRun {
  readonly child: ChildProcess;
  /** Of stdout and stderr, in the order in which it came. */
  out = '';
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.child = spawn(process.execPath, programArguments(args), {
      cwd,
      env: { ...nodeEnvironment, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
      this.stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
      this.stderr += text;
    });
  }

  get url(): string {
    return /^listening (\S+)$/m.exec(this.out)?.[1] ?? '';
  }

  get adminUrl(): string {
    return /^admin (\S+)$/m.exec(this.out)?.[1] ?? '';
  }

  get ended(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Waits for a text. @throws AssertionError when the program ends first */
  async said(text: RegExp): Promise<void> {
    await until(() => text.test(this.out) || this.ended, String(text), 180_000);
    assert.match(this.out, text);
  }

  /** @returns the exit code */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!this.ended) {
      const closed = once(this.child, 'close');
      this.child.kill(signal);
      await closed;
    }
    return this.child.exitCode;
  }

  async kill(): Promise<void> {
    await this.stop('SIGKILL');
  }
}
