/** One instance that starts: brings the book at the address of its argument to the newest schema. */
import { migratePostgres } from '../../src/store/postgres-migrate.ts';
import { postgresAddress } from '../support/postgres.ts';

await migratePostgres(postgresAddress(process.argv[2] ?? ''));
