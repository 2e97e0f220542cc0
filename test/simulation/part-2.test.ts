import { playPart } from './play.ts';

playPart(2);
