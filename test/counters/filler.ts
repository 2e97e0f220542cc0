/** A gateway that counts, as a process: fills Redis when it starts, then draws once and says what became of it. */
import { answered, openGateway, paying } from './shared-rig.ts';

const [url = '', redis = '', tenant = '', counter = '', amount = ''] = process.argv.slice(2);
const gateway = await openGateway({ url, redis: { url: redis }, tenant });
process.stdout.write(await answered(gateway, () => paying(counter, Number(amount))));
await gateway.close();
