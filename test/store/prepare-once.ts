/** One instance that starts: makes the tables at the address of its argument where there are none. */
import { prepareSchema } from '../../src/store/postgres/prepare.ts';
import { postgresAddress } from '../support/postgres.ts';

await prepareSchema(postgresAddress(process.argv[2] ?? ''));
