/** pi and Continue's command line, driven through the gateway as chat clients (clients.md §3). */
import { after, before, describe } from 'node:test';
import { startRig, type Rig } from '../support/rig.ts';
import { continueCli, pi, type Agent } from './agents.ts';
import { withAgent } from './installed.ts';
import { toolTurns } from './tool-turns.ts';

withAgent('pi', (command) => turnsOf(pi(command)));
withAgent('continue', (command) => turnsOf(continueCli(command)));

/** A gateway for each: the retry budget of a provider is shared by all that call it (R4). */
function turnsOf(agent: Agent): void {
  describe(agent.name, () => {
    let rig: Rig;
    before(async () => {
      rig = await startRig();
    });
    after(() => rig.stop());
    toolTurns(() => rig, agent);
  });
}
