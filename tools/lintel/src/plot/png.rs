//! SVG to PNG, with DejaVu Sans.

use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use crate::error::{Error, Result};

/// Twice the size of `svg`, for sharp text on any screen.
pub fn render(svg: &str) -> Result<Vec<u8>> {
    let refuse = |what: String| Error::Wrong(format!("drawing a PNG: {what}"));
    let mut options = usvg::Options::default();
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| refuse(error.to_string()))?;
    let size = tree.size().to_int_size();
    let mut pixels = tiny_skia::Pixmap::new(size.width() * SCALE, size.height() * SCALE)
        .ok_or_else(|| refuse("an empty picture".into()))?;
    let scale = tiny_skia::Transform::from_scale(SCALE as f32, SCALE as f32);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| refuse(error.to_string()))
}

const SCALE: u32 = 2;
