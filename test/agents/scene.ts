/** One run of an agent: its question, the model's turns, and what the upstream and the user got to see. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { listAt, textAt } from '../support/reading.ts';
import type { Answer, Received, ScriptedUpstream } from '../upstream/scripted.ts';
import type { Agent } from './agents.ts';
import { answerOf } from './answers.ts';
import { openBox, type Box, type Ran } from './box.ts';
import type { Stage } from './stage.ts';
import type { Turn, Wire } from './turn.ts';

/** A turn of the model, or an answer that no model gives. */
export type Step = Turn | { readonly answer: Answer };

export interface Plot {
  readonly agent: Agent;
  readonly upstream: Wire;
  readonly question?: string;
  /** Files of the project, by name. */
  readonly files?: { readonly [name: string]: string | Buffer };
  /** What requests with tools get, one after the other; `at` makes a project's path of a name. */
  readonly steps: (at: (name: string) => string) => readonly Step[];
  /** What the upstream answers to requests that it does not take, whichever step it is at. */
  readonly refuses?: (body: JsonObject) => Answer | undefined;
  readonly options?: readonly string[];
  readonly env?: { readonly [name: string]: string };
  /** The name that the agent asks for, and whose script that is; one of the rig's making without. */
  readonly model?: Cast;
}

export interface Cast {
  readonly asked: string;
  readonly upstream: string;
  readonly server: ScriptedUpstream;
}

export interface Scene {
  readonly ran: Ran;
  /** Bodies of the requests with tools: the conversation. */
  readonly main: readonly JsonObject[];
  /** Bodies of those without: titles, summaries. */
  readonly side: readonly JsonObject[];
  /** Everything that reached the upstream. */
  readonly received: readonly Received[];
  /** The ledger's rows, in order. */
  readonly calls: readonly JsonObject[];
  /** Method and path of what the gateway was asked. */
  readonly asked: readonly string[];
  /** The project's files as they are at the end. */
  readonly files: { readonly [name: string]: string };
}

/** What requests without tools get. */
export const sideText = 'A short title';

/** Plays it to its end, and checks that nothing but the gateway was asked for. */
export async function play(rig: Stage, plot: Plot): Promise<Scene> {
  const box = await openBox(rig.gateway.url);
  try {
    return await playIn(rig, box, plot);
  } finally {
    await box.close();
  }
}

async function playIn(rig: Stage, box: Box, plot: Plot): Promise<Scene> {
  const { agent, upstream, files = {} } = plot;
  const at = (name: string): string => join(box.project, name);
  for (const [name, content] of Object.entries(files)) await box.write(at(name), content);
  const steps = [...plot.steps(at)];
  const main: JsonObject[] = [];
  const side: JsonObject[] = [];
  const answerStep = (stream: boolean): Answer => {
    const step = steps[Math.min(main.length - 1, steps.length - 1)] ?? { text: 'nothing planned' };
    const planned = 'answer' in step ? step.answer : answerOf(upstream, step, stream);
    if (agent.titles !== true || main.length > 1) return planned;
    return behind(rig.gateway.callRows(model, 1), planned);
  };
  const answer = (request: Received): Answer => {
    const stream = request.json['stream'] === true;
    const refusal = plot.refuses?.(request.json);
    if (refusal !== undefined) return refusal;
    if (!offersTools(request.json)) {
      side.push(request.json);
      return answerOf(upstream, { text: sideText }, stream);
    }
    main.push(request.json);
    return answerStep(stream);
  };
  const { model, script } = cast(rig, plot, answer);
  const asker = await agent.connect(box, { url: rig.gateway.url, model });
  const ran = await box.run(asker.command(plot.question ?? 'Do it.', plot.options), {
    env: { ...asker.env, ...plot.env },
  });
  const own = new Set(agent.tries);
  const tried = box.tried.filter((target) => !own.has(target));
  assert.deepEqual(tried, [], 'nothing beyond the gateway');
  const asked = script.requests.length;
  const calls = asked === 0 ? [] : await rig.gateway.callsAfter(model, asked);
  return {
    ran,
    main,
    side,
    received: script.requests,
    calls: calls.toReversed(),
    asked: box.asked,
    files: await box.files(),
  };
}

/** Delays the body of an answer until `first` settles. */
function behind(first: Promise<unknown>, answer: Answer): Answer {
  const isList = typeof answer.body !== 'string' && !Buffer.isBuffer(answer.body);
  const pieces = isList ? answer.body : [answer.body];
  return { framing: isList ? 'chunked' : 'length', ...answer, body: [first, ...pieces] };
}

/** Newer models get their tools as an input item. */
function offersTools(body: JsonObject): boolean {
  const items = listAt(body, 'input');
  return listAt(body, 'tools').length > 0 || items.some(({ type }) => type === 'additional_tools');
}

function cast(rig: Stage, { model, upstream }: Plot, answer: (request: Received) => Answer) {
  if (model === undefined) return rig.play(upstream, answer);
  return { model: model.asked, script: model.server.script(model.upstream, answer) };
}

export interface ToolResult {
  readonly id: string;
  readonly text: string;
}

/** The tool results of a request, in order. */
export function resultsIn(dialect: Wire, body: JsonObject | undefined): readonly ToolResult[] {
  if (dialect === 'responses') {
    return listAt(body ?? {}, 'input')
      .filter((item) => String(item['type']).endsWith('_call_output'))
      .map((item) => ({ id: textAt(item, 'call_id'), text: outputText(item['output']) }));
  }
  const messages = listAt(body ?? {}, 'messages');
  if (dialect === 'chat') {
    return messages
      .filter((message) => message['role'] === 'tool')
      .map((message) => ({ id: textAt(message, 'tool_call_id'), text: contentText(message) }));
  }
  return messages
    .flatMap((message) => listAt(message, 'content'))
    .filter((block) => block['type'] === 'tool_result')
    .map((block) => ({ id: textAt(block, 'tool_use_id'), text: contentText(block) }));
}

function outputText(output: Json | undefined): string {
  return typeof output === 'string' ? output : contentText({ content: output ?? [] });
}

/** All text of a message or block. */
export function contentText(of: JsonObject): string {
  if (typeof of['content'] === 'string') return of['content'];
  return listAt(of, 'content')
    .map((part) => textAt(part, 'text'))
    .join('');
}

/** All system text of a request, wherever it stands. */
export function systemText(body: JsonObject | undefined): string {
  const { system, messages } = body ?? {};
  const top = typeof system === 'string' ? system : contentText({ content: system ?? [] });
  const inside = (Array.isArray(messages) ? messages.filter(isObject) : [])
    .filter((message) => message['role'] === 'system' || message['role'] === 'developer')
    .map(contentText);
  return [top, ...inside].join('\n');
}

export function roles(body: JsonObject | undefined): readonly string[] {
  return listAt(body ?? {}, 'messages').map((message) => textAt(message, 'role'));
}
