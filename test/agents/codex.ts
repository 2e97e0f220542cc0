/** Codex, and the calls of its tools. */
import { dirname, join } from 'node:path';
import { clientKey } from '../support/keys.ts';
import type { Agent } from './agents.ts';
import type { AgentCall } from './turn.ts';

/** With a provider of its own, as the page for users says; `more` are further settings of that provider. */
export function codex(program: readonly string[], more = ''): Agent {
  return {
    name: 'codex',
    dialect: 'chat',
    // Its plugins and experiments.
    tries: ['github.com:443', 'api.github.com:443', 'chatgpt.com:443', 'ab.chatgpt.com:443'],
    connect: async (box, { url, model }) => {
      const settings = `
model = "${model}"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
${more}
`;
      await box.write(join(box.home, '.codex', 'config.toml'), settings);
      return {
        command: (question, options = []) =>
          [...program, 'exec', '--skip-git-repo-check'].concat(
            ['--dangerously-bypass-approvals-and-sandbox', ...options],
            question,
          ),
        env: {
          GATEWAY_KEY: clientKey,
          CODEX_HOME: join(box.home, '.codex'),
          PATH: `${dirname(program[0] ?? '')}:${dirname(process.execPath)}:/usr/bin:/bin`,
        },
      };
    },
    read: (callId, path) => shell(callId, `cat ${path}`),
    write: (callId, path, text) => shell(callId, `printf %s '${text}' > ${path}`),
    shell,
  };
}

/** A call of its shell tool. */
export function shell(callId: string, cmd: string): AgentCall {
  return { id: callId, name: 'exec_command', input: { cmd } };
}
