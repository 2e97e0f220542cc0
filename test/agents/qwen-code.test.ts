/** Qwen Code itself, driven through the gateway as a chat client (clients.md §3). */
import { after, before } from 'node:test';
import { startRig, type Rig } from '../support/rig.ts';
import { qwenCode } from './agents.ts';
import { withAgent } from './installed.ts';
import { toolTurns } from './tool-turns.ts';

withAgent('qwen-code', (command) => {
  let rig: Rig;
  before(async () => {
    rig = await startRig();
  });
  after(() => rig.stop());
  toolTurns(() => rig, qwenCode(command));
});
