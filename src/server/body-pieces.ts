/** What came of a body so far. */
import { Pieces } from '../core/pieces.ts';

/** A piece that is shorter is copied: as an object of its own it may cost a hundred times its bytes. */
const smallPiece = 16 * 1024;
/** The first room for them, and the longest: each is twice the one before, so that little takes little. */
const roomOfCopies = { first: 2 * 1024, most: 64 * 1024 };
/**
 * A longer body of which the length is known is put in its place as it comes: put together later it would be there
 * twice. The place is made when so much of it has come: hundreds of clients that announce a megabyte and send a byte
 * would have as many megabytes taken in one turn of the event loop (G10).
 */
const longBody = 128 * 1024;
const nothing = Buffer.alloc(0);

/**
 * The pieces of a body. It may come byte by byte, and each piece keeps alive what it was read in: 32 MB in
 * chunks of one byte would take gigabytes (G5).
 */
export class BodyPieces {
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  #room = nothing;
  #nextRoom = roomOfCopies.first;
  #used = 0;
  /** All of a long body, as far as it came; absent until much of it is there. */
  #long: Buffer | undefined;
  #came = 0;
  readonly #told: number;

  /** @param told the length as the client tells it; 0 = it does not. No more than that may be added. */
  constructor(told = 0) {
    this.#told = told;
  }

  add(piece: Buffer): void {
    if (this.#told > longBody && this.#addLong(piece)) return;
    // Most bodies are one piece, which nobody copies.
    if (this.#first === undefined) this.#first = piece;
    else if (piece.length >= smallPiece) this.#closeRoom().push(piece);
    else {
      if (this.#room.length - this.#used < piece.length) {
        this.#closeRoom();
        const length = Math.max(this.#nextRoom, piece.length);
        this.#room = Buffer.allocUnsafeSlow(length);
        this.#nextRoom = Math.min(2 * length, roomOfCopies.most);
      }
      this.#used += piece.copy(this.#room, this.#used);
    }
  }

  /** Its memory is taken once it really comes: who announces much and sends little costs little. */
  #addLong(piece: Buffer): boolean {
    const before = this.#came;
    this.#came += piece.length;
    if (this.#came <= longBody) return false;
    this.#long ??= this.#longOfAll(before);
    this.#used += piece.copy(this.#long, this.#used);
    return true;
  }

  #longOfAll(came: number): Buffer {
    const long = Buffer.allocUnsafeSlow(this.#told);
    this.#listed().copy(long);
    this.clear();
    this.#used = came;
    return long;
  }

  /** All of them, so many bytes; nothing is kept here. */
  all(length: number): Pieces {
    const pieces = this.#all(length);
    this.clear();
    return pieces;
  }

  #all(length: number): Pieces {
    if (this.#long !== undefined) return Pieces.of(this.#long.subarray(0, length));
    const first = this.#first ?? nothing;
    if (first.length === length) return Pieces.of(first);
    const pieces = this.#listed();
    if (length >= smallPiece) return pieces;
    // It would keep the room alive, many times its length, for as long as its call runs.
    const short = Buffer.allocUnsafeSlow(length);
    pieces.copy(short);
    return Pieces.of(short);
  }

  /** Those that are in no place of their own. */
  #listed(): Pieces {
    return new Pieces([this.#first ?? nothing, ...this.#closeRoom()]);
  }

  clear(): void {
    this.#first = undefined;
    this.#rest = undefined;
    this.#room = nothing;
    this.#used = 0;
    this.#long = undefined;
  }

  /** What lies in the room is a piece of its own from here on. */
  #closeRoom(): Buffer[] {
    this.#rest ??= [];
    if (this.#used > 0) this.#rest.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
    return this.#rest;
  }
}
